"""What the loader makes of a snapshot, and what it shows of a transaction that is still open."""

from __future__ import annotations

from kvorum.metadata.record_frame import encode_record
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import CommittedBatch, LoadedSnapshot
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

TOPIC = TopicRecord(name="a", topic_id=b"\x01" * 16)


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


def test_a_snapshot_ends_before_its_end_offset() -> None:
    loader = MetadataLoader()
    values = iter([(encode_record(TOPIC, 0),)])
    loader.load_snapshot(
        LoadedSnapshot(end_offset=7, epoch=2, last_contained_log_timestamp_ms=0, values=values)
    )
    assert (loader.last_offset, loader.last_epoch, loader.published.last_offset) == (6, 2, 6)
    assert "a" in loader.published.topics.ids


def test_an_open_transaction_is_not_shown() -> None:
    loader = MetadataLoader()
    loader.commit([batch(0, BeginTransactionRecord(name="t")), batch(1, TOPIC)])
    assert "a" in loader.image.topics.ids
    assert "a" not in loader.published.topics.ids
    assert loader.published_offset == -1
    loader.commit([batch(2, EndTransactionRecord())])
    assert "a" in loader.published.topics.ids
    assert loader.published_offset == 2
