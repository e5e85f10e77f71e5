"""The latest record of each key, of the committed ones that a load has read so far."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from kvorum.coordinator.record import DamagedRecordError
from kvorum.coordinator.shard import CoordinatorShard
from kvorum.wire.records import Record, RecordBatch
from kvorum.wire.records.batch import NO_PRODUCER
from kvorum.wire.records.decompression import UNLIMITED_BYTES

PART_RECORDS: Final = 1_000
"""The number of records that are replayed before others in the event loop have their turn."""


class LatestRecords:
    """Records of which the latest one of a key is replayed; the others are not even decoded.

    It is for a shard in which a record replaces what the ones before it said of its key.
    """

    def __init__(self) -> None:
        self._by_key: dict[bytes, Record] = {}

    def add(self, batch: RecordBatch) -> None:
        """Take the records of a batch; raises `DamagedRecordError`, and WireError."""
        for record in batch.records(UNLIMITED_BYTES):
            if record.key is None:
                raise DamagedRecordError(f"no key at offset {record.offset}")
            self._by_key[record.key] = record

    def take_parts(self, shard: CoordinatorShard, now_ms: int) -> Iterator[None]:
        """Replay all, and forget them; one part for each step of the iterator.

        Raises `DamagedRecordError` for a record that cannot be read.
        """
        taken, self._by_key = self._by_key, {}
        left = iter(taken.items())
        while part := list(islice(left, PART_RECORDS)):
            for key, record in part:
                shard.load_record(record.offset, NO_PRODUCER, key, record.value, now_ms)
            yield
