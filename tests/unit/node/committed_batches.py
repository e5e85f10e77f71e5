"""Committed batches of metadata records."""

from kvorum.metadata.record_frame import encode_record
from kvorum.node.raft import CommittedBatch
from kvorum.wire.primitives import Message


def batch(offset: int, record: Message) -> CommittedBatch:
    return CommittedBatch(
        base_offset=offset,
        last_offset=offset,
        epoch=1,
        append_timestamp_ms=0,
        values=(encode_record(record, 0),),
        is_control=False,
        size_bytes=1,
    )
