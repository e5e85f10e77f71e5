"""The batches in which a coordinator's records are appended (Kafka's CoordinatorRuntime)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch
from kvorum.wire.records.batch import HEADER_BYTES, NO_PRODUCER

RECORD_OVERHEAD_BYTES_MAX: Final = 21
"""The most bytes of a record beside its key and value (DefaultRecord.MAX_RECORD_OVERHEAD)."""
FIRST_SEQUENCE: Final = 0
"""Kafka's coordinators number their batches although they are no producers."""


class TransactionProducer(NamedTuple):
    """The producer whose transaction a batch belongs to."""

    producer_id: int = NO_PRODUCER
    epoch: int = -1


NO_TRANSACTION: Final = TransactionProducer()


@dataclass(frozen=True, slots=True)
class CoordinatorBatch:
    """A batch as it is appended, and the records in it."""

    data: bytes
    records: tuple[CoordinatorRecord, ...]


def record_batches(
    records: Sequence[CoordinatorRecord],
    *,
    is_atomic: bool,
    now_ms: int,
    size_max: int,
    compression: Compression = Compression.NONE,
    producer: TransactionProducer = NO_TRANSACTION,
) -> Iterator[CoordinatorBatch]:
    """Yield one batch, or, for records that are not atomic, batches of `size_max` bytes at most.

    With a `producer` they belong to its transaction. No records make no batch. A batch that is
    larger all the same is for the log to refuse.
    """
    options = BatchOptions(
        compression=compression,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=FIRST_SEQUENCE,
        is_transactional=producer.producer_id != NO_PRODUCER,
    )
    groups = [tuple(records)] if is_atomic and records else _groups(records, size_max)
    for group in groups:
        encoded = [RecordData(one.value_bytes(), one.key_bytes(), now_ms) for one in group]
        yield CoordinatorBatch(build_batch(encoded, options), group)


def _groups(
    records: Sequence[CoordinatorRecord], size_max: int
) -> Iterator[tuple[CoordinatorRecord, ...]]:
    group: list[CoordinatorRecord] = []
    group_size = HEADER_BYTES
    for record in records:
        size = RECORD_OVERHEAD_BYTES_MAX + len(record.key_bytes())
        size += len(record.value_bytes() or b"")
        if group and group_size + size > size_max:
            yield tuple(group)
            group, group_size = [], HEADER_BYTES
        group.append(record)
        group_size += size
    if group:
        yield tuple(group)
