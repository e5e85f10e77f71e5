"""The records of operations that are appended together, and who waits for them (CoordinatorBatch).

A batch is open from its first operation until it is flushed. Operations whose records are all in
it, or that have none and come after it, wait for it.
"""

from collections.abc import Sequence
from typing import Any, Final

from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.transaction_write import TransactionWrite
from kvorum.node.broker.coordinator.write_event import CoordinatorWriteEvent
from kvorum.wire.records import BatchOptions, Compression, RecordBatch, RecordData, build_batch
from kvorum.wire.records.batch import HEADER_BYTES, NO_PRODUCER, batch_at

RECORD_OVERHEAD_BYTES_MAX: Final = 21
"""The most bytes of a record beside its key and value (DefaultRecord.MAX_RECORD_OVERHEAD)."""


def size_max_of(record: RecordData) -> int:
    """Return the most bytes that a record takes in a batch before it is compressed."""
    return RECORD_OVERHEAD_BYTES_MAX + len(record.key or b"") + len(record.value or b"")


class CoordinatorBatch:
    """A batch that begins at `base_offset`, and is to have `size_max` bytes at most."""

    def __init__(self, base_offset: int, transaction: TransactionWrite, *, size_max: int) -> None:
        self.base_offset = base_offset
        self.transaction = transaction
        self.events: list[CoordinatorWriteEvent[Any]] = []
        self._size_max = size_max
        self._size = HEADER_BYTES
        self._records: list[RecordData] = []

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a producer's transaction."""
        return self.transaction.producer.producer_id != NO_PRODUCER

    @property
    def is_full(self) -> bool:
        """Whether the batch has its size, or more: records that are too large are in one alone."""
        return self._size >= self._size_max

    def has_room_for(self, records: Sequence[RecordData]) -> bool:
        """Return whether records fit; those of one operation alone are for the log to refuse."""
        return not self._records or self._size + sum(map(size_max_of, records)) <= self._size_max

    def add(self, records: Sequence[RecordData]) -> None:
        """Put records after the others."""
        self._size += sum(map(size_max_of, records))
        self._records += records

    def build(self, compression: Compression, base_sequence: int) -> RecordBatch:
        """Return the batch for the log, which gives it its offset."""
        producer = self.transaction.producer
        options = BatchOptions(
            compression=compression,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=base_sequence,
            is_transactional=self.is_transactional,
        )
        built = batch_at(memoryview(build_batch(self._records, options)), 0)
        assert built is not None
        return built

    def complete(self, error: RequestError | None) -> None:
        """Complete the operations in their order."""
        for event in self.events:
            event.complete(error)
