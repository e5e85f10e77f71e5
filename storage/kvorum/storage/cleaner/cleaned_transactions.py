"""The transactions that a cleaner meets on its way through a log, and the markers that may go.

The data of an aborted transaction goes at once. Its marker, and that of a committed one, stays as
long as a batch of the transaction was read in the same pass; after that it may go. Counterpart of
Kafka's CleanedTransactionMetadata (KAFKA-4161, KAFKA-8351, KAFKA-13727).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.records import ControlRecordType, RecordBatch, decode_control_record


@dataclass(slots=True)
class _Ongoing:
    """An aborted transaction that has begun and not ended yet."""

    transaction: AbortedTransaction
    has_batches: bool = False


class CleanedTransactions:
    """The transactions of one pass; batches must be shown in the order of their offsets."""

    def __init__(self) -> None:
        self._committed: set[int] = set()
        self._aborted: dict[int, _Ongoing] = {}
        self._to_come: list[tuple[int, AbortedTransaction]] = []
        self._retained: list[AbortedTransaction] = []

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add aborted transactions of the batches that come next; again is allowed."""
        for one in transactions:
            heappush(self._to_come, (one.first_offset, one))

    def take_retained(self) -> list[AbortedTransaction]:
        """Return the aborted transactions, since the last call, whose markers have to stay."""
        retained, self._retained = self._retained, []
        return retained

    def may_discard_marker(self, batch: RecordBatch) -> bool:
        """Take in a control batch; return whether nothing is left of its transaction.

        Raises `CorruptBatchError` for a marker that cannot be read.
        """
        self._begin_up_to(batch.last_offset)
        record = next(batch.records(), None)
        if record is None:
            return True
        match decode_control_record(record).type:
            case ControlRecordType.ABORT:
                ongoing = self._aborted.pop(batch.producer_id, None)
                if ongoing is None or not ongoing.has_batches:
                    return True
                self._retained.append(ongoing.transaction)
                return False
            case ControlRecordType.COMMIT:
                had_batches = batch.producer_id in self._committed
                self._committed.discard(batch.producer_id)
                return not had_batches
            case _:
                return False

    def is_aborted(self, batch: RecordBatch) -> bool:
        """Take in a batch of data; return whether its transaction was aborted."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        ongoing = self._aborted.get(batch.producer_id)
        if ongoing is None:
            self._committed.add(batch.producer_id)
            return False
        ongoing.has_batches = True
        return True

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[0][0] <= offset:
            _, transaction = heappop(self._to_come)
            self._aborted.setdefault(transaction.producer_id, _Ongoing(transaction))
