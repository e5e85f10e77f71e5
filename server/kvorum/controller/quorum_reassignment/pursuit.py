"""The decisions about a reassignment, step after step (KIP-642).

The active controller takes the steps; under a leader that does not know of the target voters,
another controller has it take them. Each has a `Pursuit` for as long as that lasts: how far the
targets are behind, and what was refused, is all that is kept between two decisions. The target
voters themselves are read from the metadata each time, so that the last one counts, and the next
one goes on from there.

In place of a leader, which it sees from outside, a controller takes the next step in its turn. None
is appointed: every controller of ours watches the same leader, and the lowest id goes first. The
others let it have so much time that they see the step before they would take it themselves.

1. Once a step can be taken, a controller waits for one delay more than there are live controllers
   with lower ids. Not all of these need be ours; one that does not act costs one delay.
2. If the voters change meanwhile, another one has acted, and the wait begins again.
3. The one that made the latest change goes on at once: while it works, no other's wait ends.

With a new leader all of them wait again. It may be one of ours, which acts itself; its responses
show that when its controller is active, a moment after its election.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    Circumstances,
    Step,
    assignment_of,
    next_step,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.voters import (
    InvalidTargetVotersError,
    VoterKey,
    parse_target_voters,
    recorded_target_voters,
    voter_key,
)
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse

LOOKS_PER_ELECTION_TIMEOUT: Final = 20
"""The time between two looks at the targets' progress; a round between two looks is timed late."""


@dataclass(slots=True)
class Round:
    """The round of one replica that is under way, and how long the one before it took."""

    number: int
    end_offset: int
    started_ms: float
    last_duration_ms: float | None = None


class CatchUp:
    """The rounds of the replicas that are to become voters, while a reassignment is under way.

    A round (section 4.2.1 of Ongaro's thesis, and KIP-642's "Observer Promotion") begins with the
    end of the leader's log as it is then, and ends when the replica has everything below. A replica
    whose last round took less than an election timeout is close enough: when it becomes a voter,
    the commits that need it wait no longer than that.
    """

    def __init__(self, *, election_timeout_ms: float) -> None:
        self._election_timeout_ms = election_timeout_ms
        self._rounds: dict[VoterKey, Round] = {}

    def observe(
        self, quorum: QuorumDescription, followed: Collection[VoterKey], now_ms: float
    ) -> None:
        """Take in where the `followed` replicas are now; forget all others."""
        states = {state.key: state for state in (*quorum.voters, *quorum.observers)}
        for key in set(self._rounds) - set(followed):
            del self._rounds[key]
        for key in followed:
            state = states.get(key)
            if state is None or state.log_end_offset is None:
                self._rounds.pop(key, None)
                continue
            self._observe_one(state, state.log_end_offset, quorum.log_end_offset, now_ms)

    def _observe_one(
        self, state: ReplicaState, log_end_offset: int, leader_end_offset: int, now_ms: float
    ) -> None:
        known = self._rounds.get(state.key)
        if known is None:
            self._rounds[state.key] = Round(1, leader_end_offset, now_ms)
            known = self._rounds[state.key]
        if log_end_offset < known.end_offset:
            return
        # The time of the fetch counts, not the time at which it was looked at.
        fetched_ms = now_ms - (state.last_fetch_age_ms or 0)
        duration_ms = max(fetched_ms - known.started_ms, 0)
        self._rounds[state.key] = Round(
            known.number + 1, leader_end_offset, now_ms, last_duration_ms=duration_ms
        )

    def has_caught_up(self, key: VoterKey, now_ms: float) -> bool:
        """Return whether a replica is close enough to the end of the log to become a voter."""
        known = self._rounds.get(key)
        if known is None or known.last_duration_ms is None:
            return False
        return (
            known.last_duration_ms < self._election_timeout_ms
            and now_ms - known.started_ms < self._election_timeout_ms
        )

    def describe(self, key: VoterKey, now_ms: float) -> str:
        """Return how far a replica is, in words for an operator."""
        known = self._rounds.get(key)
        if known is None:
            return "it does not fetch"
        since_ms = round(now_ms - known.started_ms)
        return f"round {known.number} of its replication takes {since_ms} ms so far"


@dataclass(frozen=True, slots=True)
class Decision:
    """The step to take now, and the recorded target voters that it is a step towards."""

    target_text: str
    step: Step


class Pursuit:
    """Decides on one step after the other from the present voters to the target voters."""

    def __init__(self, *, election_timeout_ms: float, fetch_timeout_ms: float) -> None:
        self._catch_up = CatchUp(election_timeout_ms=election_timeout_ms)
        self._fetch_timeout_ms = fetch_timeout_ms
        self._refusals = Counter[VoterKey]()

    def decide(
        self, image: MetadataImage, quorum: QuorumDescription, now_ms: float
    ) -> Decision | None:
        """Return what to do now, None without target voters; `image` is what is committed."""
        text = recorded_target_voters(image)
        if text is None:
            return None
        return Decision(text, self._next_step(text, image, quorum, now_ms))

    def refused(self, step: Step) -> None:
        """Note that the leader has refused a step: another replica may be added first."""
        if isinstance(step, AddVoter):
            self._refusals[step.key] += 1

    def _next_step(
        self, text: str, image: MetadataImage, quorum: QuorumDescription, now_ms: float
    ) -> Step:
        try:
            targets = parse_target_voters(text)
        except InvalidTargetVotersError as error:
            return Blocked(BlockReason.UNREADABLE, str(error))
        catch_up = self._catch_up
        catch_up.observe(quorum, assignment_of(targets, quorum).new, now_ms)
        circumstances = Circumstances(
            controllers=image.cluster.controllers,
            fetch_timeout_ms=self._fetch_timeout_ms,
            has_caught_up=lambda key: catch_up.has_caught_up(key, now_ms),
            progress_text=lambda key: catch_up.describe(key, now_ms),
            refusals=self._refusals,
        )
        return next_step(targets, quorum, circumstances)


def pause_ms(election_timeout_ms: float) -> float:
    """Return how long to wait before the quorum is looked at again."""
    return election_timeout_ms / LOOKS_PER_ELECTION_TIMEOUT


def quorum_described_by(
    answer: DescribeQuorumResponse.PartitionData,
    *,
    kraft_version: int,
    committed_voters: frozenset[VoterKey] | None,
) -> QuorumDescription:
    """Return the quorum that a leader describes; ages of fetches are by the leader's clock.

    The answer does not contain whether the listed voters are committed. They are if they equal
    those of the caller's own log, `committed_voters`: None if the latest ones there are not
    committed either. A leader that has left the voters is about to resign; and one that does not
    know its high watermark has not committed anything in its epoch.
    """
    row = next((one for one in answer.current_voters if one.replica_id == answer.leader_id), None)
    now_ms = None if row is None else row.last_fetch_timestamp
    voters = tuple(_state(one, now_ms) for one in answer.current_voters)
    return QuorumDescription(
        leader_id=answer.leader_id,
        kraft_version=kraft_version,
        may_change=(
            row is not None
            and answer.high_watermark >= 0
            and committed_voters == frozenset(state.key for state in voters)
        ),
        log_end_offset=answer.high_watermark if row is None else row.log_end_offset,
        voters=voters,
        observers=tuple(_state(one, now_ms) for one in answer.observers),
    )


def _state(described: DescribeQuorumResponse.ReplicaState, now_ms: int | None) -> ReplicaState:
    age_ms = None
    if now_ms is not None and described.last_fetch_timestamp >= 0:
        age_ms = float(max(now_ms - described.last_fetch_timestamp, 0))
    return ReplicaState(
        key=voter_key(described.replica_id, described.replica_directory_id),
        log_end_offset=described.log_end_offset if described.log_end_offset >= 0 else None,
        last_fetch_age_ms=age_ms,
    )


@dataclass(frozen=True, slots=True)
class Situation:
    """The target voters and the voters of a leader; `waits_for` is None if a step is possible."""

    target_text: str
    leader_epoch: int
    voters: frozenset[VoterKey]
    waits_for: BlockReason | None


class Turn:
    """Says when one controller may act; `delay_ms` is what a step takes at most to show."""

    def __init__(self, node_id: int, *, delay_ms: float) -> None:
        self._node_id = node_id
        self._delay_ms = delay_ms
        self._situation: Situation | None = None
        self._since_ms = 0.0
        self._own: Situation | None = None

    def has_come(
        self, situation: Situation, live_controllers: Collection[int], now_ms: float
    ) -> bool:
        """Return whether it is this controller that acts, or says what is waited for."""
        if situation != self._situation:
            self._situation, self._since_ms = situation, now_ms
        if replace(situation, waits_for=None) == self._own:
            return True
        rank = sum(node_id < self._node_id for node_id in live_controllers)
        return now_ms - self._since_ms >= (rank + 1) * self._delay_ms

    def changed_voters(self, before: Situation, after: frozenset[VoterKey]) -> None:
        """Take note that this controller's own step has led to the voters `after`."""
        self._own = replace(before, voters=after, waits_for=None)

    def missed(self) -> None:
        """Take note that this controller's own step was not taken: the wait begins again."""
        self._own = self._situation = None


def live_controllers(
    quorum: QuorumDescription, controllers: Collection[int], *, fetch_timeout_ms: float
) -> frozenset[int]:
    """Return the controllers that fetch from the leader, without the leader."""
    return frozenset(
        state.key.id
        for state in (*quorum.voters, *quorum.observers)
        if state.key.id in controllers
        and state.key.id != quorum.leader_id
        and state.fetches(within_ms=fetch_timeout_ms)
    )
