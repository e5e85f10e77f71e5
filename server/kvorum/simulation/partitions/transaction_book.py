"""The book of coordinated transactions: the wishes of their producers, and what others read.

A record of a transaction names it. An outcome that was acknowledged is the one that is read.
Without an acknowledgement it is one that the producer has asked for, or an abort by a coordinator,
and the same in all partitions.
"""

from dataclasses import dataclass
from typing import Final

from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.group_ledger import OffsetLedger
from kvorum.simulation.partitions.transactions import TransactionLedger
from kvorum.simulation.properties.catalogue import Checks, Property, PropertyViolatedError
from kvorum.wire.records import RecordBatch

_BEHIND_NAME: Final = "#"
"""Separates a transaction's name from the number of its record."""


@dataclass(slots=True, kw_only=True)
class BookedTransaction:
    """A transaction of one instance of a transactional id.

    `offset` is the one that it commits for a group, in the ledger `offsets`.
    """

    name: str
    transactional_id: str
    instance: int
    begun_ms: float
    offsets: OffsetLedger
    offset: int | None = None
    is_commit_wanted: bool = False
    """Whether its producer has asked for a commit, before a later instance began."""
    is_fenced: bool = False
    """Whether a later instance began before a commit was asked for."""
    acknowledged: bool | None = None
    read: bool | None = None
    """The outcome that was read of its records: True for a commit."""

    def record_value(self, number: int) -> bytes:
        """Return the value of a record of the transaction."""
        return f"{self.name}{_BEHIND_NAME}{number}".encode()

    def ask_for(self, *, is_commit: bool) -> None:
        """Note that the producer asks for an outcome."""
        if is_commit and not self.is_fenced and not self.is_commit_wanted:
            self.is_commit_wanted = True
            if self.offset is not None:
                self.offsets.permit(self.offset)


class TransactionBook:
    """All transactions of a world; methods raise PropertyViolatedError."""

    def __init__(self, checks: Checks, *, keeps_markers: bool) -> None:
        """Without `keeps_markers` an aborted record may lack its marker (`TransactionLedger`)."""
        self._checks = checks
        self._keeps_markers = keeps_markers
        self._transactions: dict[str, BookedTransaction] = {}

    def begin(
        self, transactional_id: str, instance: int, offsets: OffsetLedger, begun_ms: float
    ) -> BookedTransaction:
        """Return a new transaction."""
        name = f"{transactional_id}/{instance}/{len(self._transactions)}"
        begun = BookedTransaction(
            name=name,
            transactional_id=transactional_id,
            instance=instance,
            begun_ms=begun_ms,
            offsets=offsets,
        )
        self._transactions[name] = begun
        return begun

    def on_initialized(self, transactional_id: str, instance: int) -> None:
        """Note that an instance has an epoch: no commit counts that was not asked for before."""
        for one in self._transactions.values():
            is_earlier = one.transactional_id == transactional_id and one.instance <= instance
            if is_earlier and not one.is_commit_wanted:
                one.is_fenced = True

    def acknowledge(self, transaction: BookedTransaction, *, is_commit: bool) -> None:
        """Note that the coordinator has answered that the outcome is decided."""
        transaction.acknowledged = is_commit
        self._check(transaction, is_commit=is_commit, message="acknowledged")
        self._settle_offset(transaction, is_commit=is_commit)

    def on_read(self, value: bytes, *, is_commit: bool, message: str) -> None:
        """Check a record that was read as committed, or left out as aborted."""
        name, _, _ = value.decode().rpartition(_BEHIND_NAME)
        transaction = self._transactions[name]
        if is_commit and not self._keeps_markers and not transaction.is_commit_wanted:
            return
        if transaction.read not in {None, is_commit}:
            self._fail(promises.WHOLE_TRANSACTIONS, transaction, message)
        self._checks.held(promises.WHOLE_TRANSACTIONS)
        self._check(transaction, is_commit=is_commit, message=message)
        if transaction.read is None:
            transaction.read = is_commit
            self._settle_offset(transaction, is_commit=is_commit)

    def _check(self, transaction: BookedTransaction, *, is_commit: bool, message: str) -> None:
        if transaction.acknowledged not in {None, is_commit}:
            self._fail(promises.OUTCOME_KEPT, transaction, message)
        if transaction.acknowledged is not None:
            self._checks.held(promises.OUTCOME_KEPT)
        if is_commit and not transaction.is_commit_wanted:
            is_zombie = transaction.is_fenced
            broken = promises.ZOMBIES_FENCED if is_zombie else promises.READS_COMMITTED
            self._fail(broken, transaction, message)
        self._checks.held(promises.ZOMBIES_FENCED)

    def _settle_offset(self, transaction: BookedTransaction, *, is_commit: bool) -> None:
        offset, offsets = transaction.offset, transaction.offsets
        if offset is None:
            return
        if is_commit:
            offsets.acknowledge(offset, transaction.begun_ms)
        else:
            offsets.refuse(offset)

    def _fail(self, broken: Property, transaction: BookedTransaction, message: str) -> None:
        raise PropertyViolatedError(broken, f"{transaction}; {message}")


class CoordinatedLedger(TransactionLedger):
    """The transactions in one partition, whose outcomes are in the book."""

    def __init__(self, checks: Checks, book: TransactionBook, *, keeps_markers: bool) -> None:
        super().__init__(checks, keeps_markers=keeps_markers)
        self._book = book

    def judge(self, batch: RecordBatch, *, is_read: bool, message: str) -> None:
        """Check the records of a batch, of which compaction may have left none."""
        for record in batch.records():
            assert record.value is not None
            where = f"producer {batch.producer_id} in {batch.producer_epoch} at {record.offset}"
            self._book.on_read(record.value, is_commit=is_read, message=f"{where}; {message}")
