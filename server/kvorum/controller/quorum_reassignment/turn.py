"""The turn of a controller to take the next step in place of a leader, which it sees from outside.

None is appointed: every controller of ours watches the same leader, and the lowest id goes first.
The others let it have so much time that they see the step before they would take it themselves.

1. Once a step can be taken, a controller waits for one delay more than there are live controllers
   with lower ids. Not all of these need be ours; one that does not act costs one delay.
2. If the voters change meanwhile, another one has acted, and the wait begins again.
3. The one that made the latest change goes on at once: while it works, no other's wait ends.

With a new leader all of them wait again. It may be one of ours, which acts itself; its responses
show that when its controller is active, a moment after its election.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import BlockReason
from kvorum.metadata.voter_key import VoterKey, voter_key
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse


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
