"""The leader of one partition: its ISR, its high watermark, and the progress of its followers.

Pure: time, log end offsets and metadata are arguments; a change for the controller is returned as
an `IsrProposal`. The owner passes proposals to an `AlterPartitionManager`, and their outcomes to
`on_answer`.

While a change is in flight, the leader does not know whether the controller has made it. The high
watermark therefore follows the largest ISR that may be in force, the *maximal* ISR: it includes a
replica that is joining, and the replicas that are leaving (KIP-497).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from kvorum.broker.partition_leader.outcomes import (
    REACTIONS,
    Accepted,
    Answer,
    LeaderRefusesError,
    Reaction,
)
from kvorum.broker.partition_leader.replica_state import FollowerFetch, ReplicaProgress, unheard_of
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import RECOVERED, PartitionRegistration
from kvorum.wire.error_codes import ErrorCode

EPOCH_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrProposal:
    """An ISR for the controller to commit, with the broker epoch of each member.

    The epoch is -1 for a member that has not fetched from this leader yet.
    """

    topic_id: bytes
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovery_state: int = RECOVERED

    @property
    def key(self) -> tuple[bytes, int]:
        """The partition's topic id and index."""
        return self.topic_id, self.partition_index


@dataclass(frozen=True, slots=True)
class CommittedPartitionState:
    """An ISR that is in force, by the metadata log or by the controller's response."""

    members: frozenset[int]
    recovery_state: int = RECOVERED

    @property
    def maximal(self) -> frozenset[int]:
        """The ISR that the high watermark follows."""
        return self.members


@dataclass(frozen=True, slots=True)
class _PendingIsr:
    """A change of the ISR that is in flight."""

    proposal: IsrProposal
    committed: CommittedPartitionState

    @property
    def members(self) -> frozenset[int]:
        """The ISR that is known to be in force."""
        return self.committed.members

    @property
    def maximal(self) -> frozenset[int]:
        """The ISR that the high watermark follows."""
        return self.committed.members


@dataclass(frozen=True, slots=True)
class PendingExpandIsr(_PendingIsr):
    """A proposal that adds a replica; it counts from now on, whatever the outcome is."""

    joining: int

    @property
    def maximal(self) -> frozenset[int]:
        """The ISR that the high watermark follows."""
        return self.committed.members | {self.joining}


@dataclass(frozen=True, slots=True)
class PendingShrinkIsr(_PendingIsr):
    """A proposal that removes replicas; they count until the controller has accepted it."""

    leaving: frozenset[int]


IsrState: TypeAlias = CommittedPartitionState | PendingExpandIsr | PendingShrinkIsr


class LocalBroker(Protocol):
    """The broker that has the replica; its epoch and its image change in the meantime."""

    @property
    def id(self) -> int:
        """The id of the broker."""
        ...

    def epoch(self) -> int:
        """Return the epoch of its registration."""
        ...

    def image(self) -> MetadataImage:
        """Return the metadata as it knows them now."""
        ...


class PartitionLeader:
    """One partition while this broker leads it, from one leader epoch to the next.

    The owner creates an object whenever the broker becomes leader, and discards it when the broker
    becomes follower. Every method that can move the high watermark does so itself.
    """

    def __init__(
        self,
        broker: LocalBroker,
        *,
        topic_id: bytes,
        partition_index: int,
        lag_max_ms: float,
        min_insync_replicas: int,
        high_watermark: int,
    ) -> None:
        """Begin with the high watermark that the replica knows.

        `lag_max_ms` is ``replica.lag.time.max.ms``. `min_insync_replicas` is the topic's setting; a
        partition with fewer replicas needs all of them.
        """
        self._broker = broker
        self._topic_id = topic_id
        self._partition_index = partition_index
        self._lag_max_ms = lag_max_ms
        self._min_insync_replicas = min_insync_replicas
        self._followers: dict[int, ReplicaProgress] = {}
        self.epoch_start_offset = 0
        """The end of the log when this leader epoch began."""
        self.high_watermark = high_watermark
        self.log_end_offset = 0
        """The end of what is stored of the leader's own log."""
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.state: IsrState = CommittedPartitionState(frozenset())

    @property
    def min_insync_replicas(self) -> int:
        """The number of replicas that must be in sync for a write with ``acks=all``."""
        return min(self._min_insync_replicas, len(self._followers) + 1)

    @property
    def is_offset_available(self) -> bool:
        """Whether the high watermark is known to be no older than what other leaders have told.

        A new leader's may be, until it has reached the start of the leader's epoch (KIP-207).
        """
        return self.high_watermark >= self.epoch_start_offset

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.state.members) < len(self._followers) + 1

    @property
    def is_at_min_isr(self) -> bool:
        """Whether just as many replicas are in sync as a write with ``acks=all`` needs."""
        return len(self.state.members) == self.min_insync_replicas

    @property
    def is_under_min_isr(self) -> bool:
        """Whether fewer replicas than `min_insync_replicas` are in sync."""
        return len(self.state.members) < self.min_insync_replicas

    def lead(
        self,
        partition: PartitionRegistration,
        *,
        log_end_offset: int,
        stored_end_offset: int,
        now_ms: float,
    ) -> bool:
        """Apply the partition's state in the metadata log; return False if that state is outdated.

        A new leader epoch begins at `log_end_offset`. Of the leader's own log counts what is below
        `stored_end_offset`.

        A change in flight is dropped: the log contains the state in force. The exception is a log
        that only repeats the state of the controller's last response: a change that was proposed
        after that response may be in force by now. (Kafka 4.3 drops it there, too, and may then
        treat a record as committed that a member of the ISR does not have.) This leader has
        recovered as much as it could, so the partition is RECOVERED from now on.
        """
        if partition.partition_epoch < self.partition_epoch:
            return False
        known = self.leader_epoch, self.partition_epoch
        if (partition.leader_epoch, partition.partition_epoch) == known:
            return True
        isr = frozenset(partition.isr)
        # In an epoch that this leader has missed another one may have led, and followers may have
        # truncated their logs for it.
        is_progress_known = 0 <= self.leader_epoch == partition.leader_epoch - 1
        followers = [one for one in partition.replicas if one != self._broker.id]
        self._followers = {
            follower: self._followers.get(follower, ReplicaProgress()) for follower in followers
        }
        self.state = CommittedPartitionState(isr, RECOVERED)
        self.log_end_offset = max(self.log_end_offset, stored_end_offset)
        if partition.leader_epoch > self.leader_epoch:
            self.epoch_start_offset = log_end_offset
            for follower, progress in self._followers.items():
                is_in_sync = follower in isr
                self._followers[follower] = (
                    progress.in_new_term(
                        leader_end_offset=log_end_offset, is_in_sync=is_in_sync, now_ms=now_ms
                    )
                    if is_progress_known
                    else unheard_of(is_in_sync=is_in_sync, now_ms=now_ms)
                )
            self.leader_epoch = partition.leader_epoch
        self.partition_epoch = partition.partition_epoch
        self._raise_high_watermark(now_ms)
        return True

    def in_sync_followers(self) -> Iterator[tuple[int, ReplicaProgress]]:
        """Return the followers in the ISR in force, with their progress."""
        return (each for each in self._followers.items() if each[0] in self.state.members)

    def update_min_insync_replicas(self, count: int) -> None:
        """Use another value of the topic's setting; it counts from the next event on."""
        self._min_insync_replicas = count

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the lowest log start of this leader and of the followers that are alive."""
        brokers = self._cluster.brokers
        starts = [
            progress.log_start_offset
            for follower, progress in self._followers.items()
            if follower in brokers and not brokers[follower].is_fenced
        ]
        return min(log_start_offset, *starts) if starts else log_start_offset

    def on_append(self, stored_end_offset: int, now_ms: float) -> None:
        """Record the new end of what is stored of the leader's own log."""
        self.log_end_offset = max(self.log_end_offset, stored_end_offset)
        self._raise_high_watermark(now_ms)

    def check_fetch(self, fetch: FollowerFetch) -> None:
        """Raise `LeaderRefusesError` for a fetch that must not be served."""
        has_epoch = fetch.leader_epoch != EPOCH_UNKNOWN
        if has_epoch and fetch.leader_epoch < self.leader_epoch:
            raise LeaderRefusesError(ErrorCode.FENCED_LEADER_EPOCH)
        if has_epoch and fetch.leader_epoch > self.leader_epoch:
            raise LeaderRefusesError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if fetch.broker_id not in self._followers:
            # The follower may know of an assignment that this leader has not seen yet.
            raise LeaderRefusesError(
                ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )

    def on_fetch(self, fetch: FollowerFetch, now_ms: float) -> IsrProposal | None:
        """Record a follower's progress; return the proposal if the follower should join the ISR.

        The caller must know that the follower's log agrees with the leader's up to the offset.
        """
        self.check_fetch(fetch)
        if self._is_of_past_incarnation(fetch):
            raise LeaderRefusesError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        before = self._followers[fetch.broker_id]
        self._followers[fetch.broker_id] = before.after_fetch(
            fetch, leader_end_offset=self.log_end_offset, now_ms=now_ms
        )
        proposal = self._expansion(fetch.broker_id)
        if before.log_end_offset != fetch.offset:
            self._raise_high_watermark(now_ms)
        return proposal

    def shrink(self, now_ms: float) -> IsrProposal | None:
        """Return the proposal that removes followers that lag too far behind, None without any.

        The owner calls this every half of ``replica.lag.time.max.ms``.
        """
        state = self.state
        if not isinstance(state, CommittedPartitionState):
            return None
        lagging = frozenset(
            member
            for member in state.members - {self._broker.id}
            if not self._is_caught_up(member, now_ms)
        )
        if not lagging:
            return None
        proposal = self._proposal(state, state.members - lagging)
        self.state = PendingShrinkIsr(proposal, state, lagging)
        return proposal

    def on_answer(self, proposal: IsrProposal, answer: Answer, now_ms: float) -> IsrProposal | None:
        """Handle the controller's response to a proposal; return the proposal to send it again.

        A response to anything but the proposal in flight is too late and is ignored.
        """
        state = self.state
        if isinstance(state, CommittedPartitionState) or state.proposal is not proposal:
            return None
        if isinstance(answer, Accepted):
            self._accept(answer, now_ms)
            return None
        reaction = REACTIONS.get(answer.code, Reaction.RETRY)
        if reaction is Reaction.GO_BACK:
            self.state = state.committed
        return proposal if reaction is Reaction.RETRY else None

    def check_acks_all(self, required_offset: int) -> ErrorCode | None:
        """Return the error code for a write that ends at an offset, None while it must wait."""
        if self.high_watermark < required_offset:
            return None
        if len(self.state.maximal) < self.min_insync_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def check_append(self) -> None:
        """Raise `LeaderRefusesError` where a write with ``acks=all`` must not be started."""
        if self.is_under_min_isr:
            raise LeaderRefusesError(ErrorCode.NOT_ENOUGH_REPLICAS)

    def _expansion(self, follower: int) -> IsrProposal | None:
        state, progress = self.state, self._followers[follower]
        if not isinstance(state, CommittedPartitionState) or follower in state.members:
            return None
        # Records before the start of this leader's epoch may be committed although this leader's
        # high watermark has not reached them yet.
        needed = max(self.high_watermark, self.epoch_start_offset)
        if progress.log_end_offset < needed or not self._may_join(follower):
            return None
        proposal = self._proposal(state, state.members | {follower})
        self.state = PendingExpandIsr(proposal, state, follower)
        return proposal

    def _proposal(self, state: CommittedPartitionState, members: frozenset[int]) -> IsrProposal:
        return IsrProposal(
            topic_id=self._topic_id,
            partition_index=self._partition_index,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            isr=tuple((member, self._epoch_of(member)) for member in sorted(members)),
            recovery_state=state.recovery_state,
        )

    def _epoch_of(self, member: int) -> int:
        if member == self._broker.id:
            return self._broker.epoch()
        progress = self._followers.get(member)
        # A member that has not fetched yet has no known epoch: the partition epoch must suffice.
        if progress is None or progress.broker_epoch is None:
            return EPOCH_UNKNOWN
        return progress.broker_epoch

    def _accept(self, answer: Accepted, now_ms: float) -> None:
        if answer.leader_epoch != self.leader_epoch or answer.partition_epoch < (
            self.partition_epoch
        ):
            return
        self.state = CommittedPartitionState(frozenset(answer.isr), answer.recovery_state)
        self.partition_epoch = answer.partition_epoch
        self._raise_high_watermark(now_ms)

    def _raise_high_watermark(self, now_ms: float) -> None:
        """Move the high watermark to the lowest end of the maximal ISR and of joining replicas.

        It does not move while too few replicas are in sync: an ELR member that becomes leader then
        has everything below it (KIP-966).
        """
        if self.is_under_min_isr:
            return
        offset = self.log_end_offset
        for follower, progress in self._followers.items():
            if progress.log_end_offset < offset and (
                follower in self.state.maximal
                or (self._is_caught_up(follower, now_ms) and self._may_join(follower))
            ):
                offset = progress.log_end_offset
        self.high_watermark = max(self.high_watermark, offset)

    def _is_caught_up(self, follower: int, now_ms: float) -> bool:
        progress = self._followers.get(follower)
        return progress is not None and progress.is_caught_up(
            leader_end_offset=self.log_end_offset, now_ms=now_ms, lag_max_ms=self._lag_max_ms
        )

    @property
    def _cluster(self) -> ClusterImage:
        return self._broker.image().cluster

    def _may_join(self, follower: int) -> bool:
        """Return whether a follower may join the ISR (KIP-841, KIP-903).

        The broker must be registered, unfenced and not shutting down, and the incarnation that has
        fetched must be the registered one: an earlier one may have had records that are lost now.
        """
        broker = self._cluster.brokers.get(follower)
        fetch_epoch = self._followers[follower].broker_epoch
        if broker is None or not broker.is_active or fetch_epoch is None:
            return False
        return fetch_epoch in (EPOCH_UNKNOWN, broker.epoch)

    def _is_of_past_incarnation(self, fetch: FollowerFetch) -> bool:
        """Return whether a fetch comes from an incarnation that has been replaced."""
        broker = self._cluster.brokers.get(fetch.broker_id)
        if broker is None or broker.is_fenced or fetch.broker_epoch == EPOCH_UNKNOWN:
            return False
        return fetch.broker_epoch < broker.epoch
