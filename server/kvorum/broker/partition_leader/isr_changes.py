"""The changes of ISRs that the leaders on a broker propose (Kafka's AlterPartitionListener)."""

from collections.abc import Callable

from kvorum.broker.partition_leader.leader import (
    CommittedPartitionState,
    IsrProposal,
    IsrState,
    PendingExpandIsr,
)
from kvorum.broker.partition_leader.outcomes import Accepted, Answer


class IsrChanges:
    """Passes proposals on to the controller, and counts its answers since the start."""

    def __init__(self, submit: Callable[[IsrProposal], None]) -> None:
        """`submit` passes a proposal on."""
        self._submit = submit
        self.expand_count = 0
        self.shrink_count = 0
        self.failure_count = 0

    def propose(self, proposal: IsrProposal | None) -> None:
        """Pass a leader's proposal on, if it has one."""
        if proposal is not None:
            self._submit(proposal)

    def on_answer(self, state: IsrState, proposal: IsrProposal, answer: Answer) -> None:
        """Count the answer to a proposal, unless it comes too late for the leader's `state`."""
        if isinstance(state, CommittedPartitionState) or state.proposal is not proposal:
            return
        if not isinstance(answer, Accepted):
            self.failure_count += 1
        elif isinstance(state, PendingExpandIsr):
            self.expand_count += 1
        else:
            self.shrink_count += 1
