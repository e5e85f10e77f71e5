"""The ISR as its leader knows it: committed by the controller, or with a change in flight.

While a change is in flight, the leader does not know whether the controller has made it. The high
watermark therefore follows the largest ISR that may be in force, the *maximal* ISR: it includes a
replica that is joining, and the replicas that are leaving (KIP-497).
"""

from dataclasses import dataclass
from typing import TypeAlias

from kvorum.metadata.partition import RECOVERED


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
