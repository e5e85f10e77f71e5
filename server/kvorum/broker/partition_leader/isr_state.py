"""The ISR as its leader holds it: committed by the controller, or with a change under way.

While a change is under way nobody knows whether the controller has made it. The high watermark
therefore goes by the largest ISR that may be in force, the *maximal* one: with the replica that
is to join, and with those that are to leave (KIP-497).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kvorum.metadata.partition import RECOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrProposal:
    """An ISR for the controller to commit, with the broker epoch of each member.

    An epoch of -1 is for a member that this leader has not heard from yet.
    """

    topic_id: bytes
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovery_state: int = RECOVERED

    @property
    def key(self) -> tuple[bytes, int]:
        """The partition it is about."""
        return self.topic_id, self.partition_index


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """An ISR that the metadata log, or the controller's answer, says is in force."""

    members: frozenset[int]
    recovery_state: int = RECOVERED

    @property
    def maximal(self) -> frozenset[int]:
        """The ISR that the high watermark goes by."""
        return self.members


@dataclass(frozen=True, slots=True)
class PendingExpansion:
    """A replica is to join; it counts from now on, whatever comes of it."""

    joining: int
    proposal: IsrProposal
    committed: CommittedIsr

    @property
    def members(self) -> frozenset[int]:
        """The ISR that is known to be in force."""
        return self.committed.members

    @property
    def maximal(self) -> frozenset[int]:
        """The ISR that the high watermark goes by."""
        return self.committed.members | {self.joining}


@dataclass(frozen=True, slots=True)
class PendingShrink:
    """Replicas are to leave; they count until the controller has said so."""

    leaving: frozenset[int]
    proposal: IsrProposal
    committed: CommittedIsr

    @property
    def members(self) -> frozenset[int]:
        """The ISR that is known to be in force."""
        return self.committed.members

    @property
    def maximal(self) -> frozenset[int]:
        """The ISR that the high watermark goes by."""
        return self.committed.members


PendingIsr: TypeAlias = PendingExpansion | PendingShrink
IsrState: TypeAlias = CommittedIsr | PendingExpansion | PendingShrink
