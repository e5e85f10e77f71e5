"""Committed batches of metadata records."""

from kvorum.metadata.record_frame import encode_record
from kvorum.node.raft import CommittedBatch
from kvorum.wire.primitives import Message


def batch(offset: int, *records: Message) -> CommittedBatch:
    """Return a batch of records, the first of which is at `offset`."""
    return CommittedBatch(
        base_offset=offset,
        last_offset=offset + len(records) - 1,
        epoch=1,
        append_timestamp_ms=0,
        values=tuple(encode_record(record, 0) for record in records),
        is_control=False,
        size_bytes=1,
    )
