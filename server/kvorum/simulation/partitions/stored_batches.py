"""The batches of a log as the checks compare them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.checksums import crc32c
from kvorum.wire.records import RecordBatch, read_batches
from kvorum.wire.records.batch import INT32_MAX, NO_SEQUENCE

_READ_BYTES = 1 << 20


class StoredBatch(NamedTuple):
    """A batch by its place, its leader epoch, and the checksum of all that its producer has sent.

    Batches are equal if they are the same bytes. In a compacted log each record stands for itself:
    `crc` is that of its key and value. `key` is then that of a record of which the latest one is
    kept; it is None for records of transactions, and in logs that are not compacted.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    max_timestamp: int
    key: bytes | None = None
    is_tombstone: bool = False

    @classmethod
    def of(cls, batch: RecordBatch) -> StoredBatch:
        """Return what is compared of a batch."""
        return cls(
            batch.base_offset,
            batch.last_offset,
            batch.partition_leader_epoch,
            batch.crc,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.max_timestamp,
        )


def batches_of(log: UnifiedLog, start: int, end: int) -> Iterator[RecordBatch]:
    """Yield the batches from the one that holds `start` up to `end`."""
    offset = start
    while offset < end:
        data = log.local_log.read(offset, _READ_BYTES, end_offset=end)
        if not data:
            return
        for batch in read_batches(data):
            yield batch
            offset = batch.next_offset


def stored(batches: Iterable[RecordBatch], *, by_record: bool) -> list[StoredBatch]:
    """Return what is compared of batches: of each record by itself where the log is compacted."""
    if not by_record:
        return [StoredBatch.of(batch) for batch in batches]
    return [record for batch in batches for record in _records_of(batch)]


def _records_of(batch: RecordBatch) -> Iterator[StoredBatch]:
    has_sequence = batch.base_sequence != NO_SEQUENCE
    for record in batch.records():
        distance = record.offset - batch.base_offset
        yield StoredBatch(
            record.offset,
            record.offset,
            batch.partition_leader_epoch,
            crc32c(record.value or b"", crc32c(record.key or b"")),
            batch.producer_id,
            batch.producer_epoch,
            (batch.base_sequence + distance) & INT32_MAX if has_sequence else NO_SEQUENCE,
            record.timestamp,
            None if batch.is_transactional or batch.is_control else record.key,
            record.value is None,
        )
