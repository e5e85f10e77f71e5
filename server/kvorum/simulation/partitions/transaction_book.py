"""The book of coordinated transactions: the wishes of their producers, and their offsets.

A record of a transaction names it. The history of the clients (`client_history`) judges what was
read of the records; the offset that a transaction commits has the outcome that was acknowledged, or
read first.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from kvorum.simulation.partitions.client_history import FAIL, INFO, OK, Operation
from kvorum.simulation.partitions.group_ledger import OffsetLedger
from kvorum.simulation.partitions.transactions import TransactionLedger
from kvorum.simulation.properties.catalogue import Checks
from kvorum.wire.records import RecordBatch

_BEHIND_NAME: Final = "#"
"""Separates a transaction's name from the number of its record."""


@dataclass(slots=True, kw_only=True)
class BookedTransaction:
    """A transaction of one instance of a transactional id.

    `offset` is the one that it commits for a group, in the ledger `offsets`.
    """

    name: str
    producer_id: int
    epoch: int
    begun_ms: float
    operation: Operation
    offsets: OffsetLedger
    offset: int | None = None
    is_commit_wanted: bool = False
    """Whether its producer has asked for a commit, before a later epoch began."""
    is_settled: bool = False
    """Whether its offset has an outcome."""

    def record_value(self, number: int) -> bytes:
        """Return the value of a record of the transaction."""
        return f"{self.name}{_BEHIND_NAME}{number}".encode()

    def ask_for(self, *, is_commit: bool) -> None:
        """Note that the producer asks for an outcome."""
        if is_commit and self.operation.completed is None and not self.is_commit_wanted:
            self.is_commit_wanted = True
            if self.offset is not None:
                self.offsets.permit(self.offset)

    def acknowledge(self, *, is_commit: bool) -> None:
        """Note that the coordinator has answered that the outcome is decided."""
        self.operation.end(OK if is_commit else FAIL)
        self.settle(is_commit=is_commit)

    def fence(self) -> None:
        """Note that a later epoch has begun: without a commit asked for it has failed."""
        if not self.is_commit_wanted:
            self.operation.end(FAIL)

    def break_off(self) -> None:
        """Note that its producer has ended."""
        self.operation.end(INFO if self.is_commit_wanted else FAIL)

    def settle(self, *, is_commit: bool) -> None:
        """Give its offset the outcome, unless it has one."""
        if self.is_settled or self.offset is None:
            return
        self.is_settled = True
        if is_commit:
            self.offsets.acknowledge(self.offset, self.begun_ms)
        else:
            self.offsets.refuse(self.offset)


class TransactionBook:
    """All transactions of a world."""

    def __init__(self, *, keeps_markers: bool) -> None:
        """Without `keeps_markers` an aborted record may lack its marker (`TransactionLedger`)."""
        self._keeps_markers = keeps_markers
        self._transactions: dict[str, BookedTransaction] = {}
        self._epochs: defaultdict[int, int] = defaultdict(int)
        """The latest epoch that each producer id was initialized with."""

    def add(self, transaction: BookedTransaction) -> None:
        """Add a transaction, of a producer that may be fenced already."""
        self._transactions[transaction.name] = transaction
        if transaction.epoch < self._epochs[transaction.producer_id]:
            transaction.fence()

    def on_initialized(self, producer_id: int, epoch: int) -> None:
        """Note that an epoch has begun: those before it are fenced."""
        self._epochs[producer_id] = max(self._epochs[producer_id], epoch)
        for one in self._transactions.values():
            if one.producer_id == producer_id and one.epoch < epoch:
                one.fence()

    def on_read(self, value: bytes, *, is_commit: bool) -> None:
        """Note a record that was read as committed, or left out as aborted."""
        name, _, _ = value.decode().rpartition(_BEHIND_NAME)
        transaction = self._transactions[name]
        if is_commit and not self._keeps_markers and not transaction.is_commit_wanted:
            return
        transaction.settle(is_commit=is_commit)


class CoordinatedLedger(TransactionLedger):
    """The transactions in one partition, whose outcomes are in the book."""

    def __init__(self, checks: Checks, book: TransactionBook, *, keeps_markers: bool) -> None:
        super().__init__(checks, keeps_markers=keeps_markers)
        self._book = book

    def judge(self, batch: RecordBatch, *, is_read: bool, message: str) -> None:
        """Take the records of a batch, of which compaction may have left none."""
        del message
        for record in batch.records():
            assert record.value is not None
            self._book.on_read(record.value, is_commit=is_read)
