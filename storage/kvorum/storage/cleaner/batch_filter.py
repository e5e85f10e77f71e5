"""The part of one batch that compaction keeps (Kafka's cleanInto and MemoryRecords.filterTo).

**Records.** Kept is what lies after the mapped part of the log, and else the latest record of each
key. A tombstone (null value) gives its batch a *delete horizon*, the time from which later passes
drop it (KIP-534). Records without a key, and those of aborted transactions, are dropped.

**Markers.** The marker of a transaction of which no batch is left gets a horizon, too, and goes in
a pass after it.

**Empty batches.** A batch of which nothing is left stays as a header where it says something that
is said nowhere else: the last sequence, or epoch, of an active producer, or, at the high watermark,
where the log's offsets had come to.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import compress
from typing import Final, NamedTuple

from kvorum.storage.cleaner.offset_map import OffsetMap
from kvorum.storage.log.producer_state import ProducerEntry
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.records import ControlRecordType, Record, RecordBatch, decode_control_record
from kvorum.wire.records.compacted_batch import with_records, without_records

_GONE: Final = 0
_KEPT: Final = 1
_KEPT_TOMBSTONE: Final = 2


@dataclass(slots=True)
class _Ongoing:
    """An aborted transaction that has begun and not ended yet."""

    transaction: AbortedTransaction
    has_batches: bool = False


class CleanedTransactions:
    """The transactions of one pass; batches must be shown in the order of their offsets.

    The data of an aborted transaction goes at once. Its marker, and that of a committed one, stays
    as long as a batch of the transaction was read in the same pass; after that it may go. This is
    Kafka's CleanedTransactionMetadata (KAFKA-4161, KAFKA-8351, KAFKA-13727).
    """

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


class LastRecord(NamedTuple):
    """The offset of a producer's last data, None where only a marker is known, and its epoch."""

    last_data_offset: int | None
    producer_epoch: int


def last_records(producers: Mapping[int, ProducerEntry]) -> dict[int, LastRecord]:
    """Return for each active producer the place of its last record."""
    return {
        producer_id: LastRecord(
            entry.batches[-1].last_offset if entry.batches else None, entry.epoch
        )
        for producer_id, entry in producers.items()
    }


class _Decision(NamedTuple):
    """The facts about a batch before its records are read."""

    has_no_use: bool
    """All its records may go."""

    is_marker_without_data: bool
    """It is a marker, and nothing is left of its transaction."""

    is_kept_when_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFilter:
    """The rules of one pass over a log; batches are shown to it in the order of their offsets."""

    offset_map: OffsetMap
    transactions: CleanedTransactions
    last_records: Mapping[int, LastRecord]
    high_watermark: int
    """The offset after the last record that is committed."""

    now_ms: int
    delete_retention_ms: int
    record_bytes_max: int

    def filtered(self, batch: RecordBatch) -> bytes | memoryview | None:
        """Return the bytes that stay of a batch, its own where all of it stays; None for nothing.

        Raises `CorruptBatchError` where its records cannot be read.
        """
        decision = self._decide(batch)
        if decision.has_no_use and not decision.is_kept_when_empty:
            return None
        content = None if decision.has_no_use else batch.content()
        records = () if content is None else content.records(self.record_bytes_max)
        # A byte for each record: all the records at once would take a hundred times that.
        fates = bytes(self._fates(batch, records))
        if content is None or not any(fates):
            return without_records(batch) if decision.is_kept_when_empty else None
        horizon = batch.delete_horizon_ms
        if horizon is None and (_KEPT_TOMBSTONE in fates or decision.is_marker_without_data):
            horizon = self.now_ms + self.delete_retention_ms
        elif _GONE not in fates:
            return batch.data
        kept = compress(content.records(), fates)
        return with_records(batch, kept, delete_horizon_ms=horizon)

    def _decide(self, batch: RecordBatch) -> _Decision:
        is_kept_when_empty = self._is_last_of_its_producer(batch) or (
            batch.next_offset == self.high_watermark
        )
        if not batch.is_control:
            return _Decision(self.transactions.is_aborted(batch), False, is_kept_when_empty)
        may_go = self.transactions.may_discard_marker(batch)
        horizon = batch.delete_horizon_ms
        is_past = may_go and horizon is not None and horizon <= self.now_ms
        return _Decision(is_past, may_go, is_kept_when_empty)

    def _is_last_of_its_producer(self, batch: RecordBatch) -> bool:
        last = self.last_records.get(batch.producer_id)
        if not batch.has_producer_id or last is None:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch

    def _fates(self, batch: RecordBatch, records: Iterable[Record]) -> Iterator[int]:
        horizon = batch.delete_horizon_ms
        tombstones_stay = horizon is None or self.now_ms < horizon
        latest_mapped, offset_of = self.offset_map.latest_offset, self.offset_map.get
        is_control = batch.is_control
        for record in records:
            stays = (
                is_control
                or record.offset > latest_mapped
                or (
                    record.key is not None
                    and (record.value is not None or tombstones_stay)
                    and record.offset >= offset_of(record.key)
                )
            )
            yield (_KEPT_TOMBSTONE if record.value is None else _KEPT) if stays else _GONE
