"""The batches of a log as the checks compare them."""

from __future__ import annotations

from typing import NamedTuple

from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.records import RecordBatch, read_batches

_READ_BYTES = 1 << 20


class StoredBatch(NamedTuple):
    """A batch by its place, its leader epoch, and the checksum of all that its producer has sent.

    Batches are equal if they are the same bytes.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    producer_id: int
    producer_epoch: int
    base_sequence: int

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
        )


def stored_batches(log: UnifiedLog, start: int, end: int) -> list[StoredBatch]:
    """Return the batches from the one that holds `start` up to `end`."""
    found: list[StoredBatch] = []
    offset = start
    while offset < end:
        data = log.local_log.read(offset, _READ_BYTES, end_offset=end)
        if not data:
            break
        for batch in read_batches(data):
            found.append(StoredBatch.of(batch))
            offset = batch.next_offset
    return found
