"""The producers of a log whose transactions are being verified (KIP-890).

Before the first batch of a transaction is appended, its leader asks the transaction's coordinator.
A guard is made before that. The batch is appended only if the guard is still in force then: a
marker that came meanwhile has ended the transaction that the coordinator spoke of.

Names are those of Kafka's VerificationGuard and VerificationStateEntry.
"""

from dataclasses import dataclass, field
from typing import NamedTuple


class VerificationGuard:
    """Stands for one verification; a guard is equal to itself alone."""

    __slots__ = ()


class TransactionAppend(NamedTuple):
    """The transaction that an append belongs to, as it states it.

    `guard` is that of a verification which succeeded. With `must_be_verified`, a batch that begins
    a transaction is refused without it (``transaction.partition.verification.enable``).
    `transaction_version` is that of a marker, as its coordinator says: 2 and above where each
    transaction has an epoch of its own.
    """

    guard: VerificationGuard | None = None
    must_be_verified: bool = False
    transaction_version: int = 0


NO_TRANSACTION = TransactionAppend()


@dataclass(slots=True)
class VerificationStateEntry:
    """A producer of which a batch waits for its verification, or was refused by it.

    `timestamp` is the wall clock in milliseconds at its beginning. `supports_epoch_bump` says that
    each transaction of the producer has an epoch of its own. `lowest_sequence` is the lowest one
    that was seen: no batch after it may be written before the one that has it.
    """

    timestamp: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool
    guard: VerificationGuard = field(default_factory=VerificationGuard)

    def maybe_update_lowest_sequence_and_epoch(self, sequence: int, epoch: int) -> None:
        """Take in another batch that waits; one of a higher epoch begins again."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
