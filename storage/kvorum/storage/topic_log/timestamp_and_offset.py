"""The first record that is as late as a time (Kafka's FileRecords.TimestampAndOffset)."""

from typing import NamedTuple

from kvorum.wire.records.decompression import RECORD_BYTES_MAX
from kvorum.wire.records.legacy import Entry, LegacyMessage
from kvorum.wire.records.size_check import SizeCheck, any_size


class TimestampAndOffset(NamedTuple):
    """The place of a record: its timestamp in milliseconds, its offset, its leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_record_since(
    batch: Entry,
    timestamp: int,
    *,
    start_offset: int,
    record_bytes_max: int = RECORD_BYTES_MAX,
    check_size: SizeCheck = any_size,
) -> TimestampAndOffset | None:
    """Return the first record of a batch with `timestamp` or a later one, from `start_offset` on.

    None without such a record. Records are read only where the header allows for one, and never
    those of format 0, which have no time. Raises `CorruptBatchError` where they cannot be read, and
    `InvalidRecordError` where a packed one that precedes the place is larger than
    `record_bytes_max`. `check_size` may end the search as in `RecordBatch.content`.
    """
    if batch.magic == 0 or batch.max_timestamp < timestamp:
        return None
    records = (
        batch.messages(check_size, record_bytes_max=record_bytes_max)
        if isinstance(batch, LegacyMessage)
        else batch.content(check_size).records_and_outlines(record_bytes_max)
    )
    for record in records:
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampAndOffset(record.timestamp, record.offset, batch.partition_leader_epoch)
    return None
