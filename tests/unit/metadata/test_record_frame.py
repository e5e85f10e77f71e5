"""The frame around a metadata record: what is written, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.metadata.errors import MetadataParseError
from kvorum.metadata.record_frame import decode_record, encode_record
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.topic_record import TopicRecord


def test_a_no_op_is_four_bytes() -> None:
    assert encode_record(NoOpRecord(), 0) == b"\x01\x14\x00\x00"
    assert decode_record(b"\x01\x14\x00\x00") == (NoOpRecord(), 0)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "ends inside its frame version"),
        (b"\x00\x14\x00\x00", "unknown frame version 0"),
        (b"\x02\x14\x00\x00", "unknown frame version 2"),
        (b"\x01", "ends inside its type"),
        (b"\x01\x14", "ends inside its version"),
        (b"\x01\x06\x00\x00", "unknown metadata record type 6"),
        (b"\x01\xe7\x07\x00\x00", "unknown metadata record type 999"),
        (b"\x01\x14\x01\x00", "NoOpRecord has no version 1"),
        (b"\x01\x14\x00\x00\x00", "NoOpRecord"),
        (b"\x01\x14\x00", "NoOpRecord"),
        (b"\x01\x80\x80\x02\x00\x00", "too large: 32768"),
        (b"\x01\xff\xff\xff\xff\xff\xff", "unterminated"),
        (b"\x01\x02\x00\x05t", "TopicRecord"),
    ],
)
def test_what_is_not_a_record_is_refused(value: bytes, problem: str) -> None:
    with pytest.raises(MetadataParseError, match=problem):
        decode_record(value)


def test_only_metadata_records_go_into_the_frame() -> None:
    with pytest.raises(TypeError, match="LeaderChangeMessage is not a metadata record"):
        encode_record(LeaderChangeMessage(), 0)


@given(st.text(max_size=20), st.binary(min_size=16, max_size=16))
def test_round_trip(name: str, topic_id: bytes) -> None:
    record = TopicRecord(name=name, topic_id=topic_id)
    assert decode_record(memoryview(encode_record(record, 0))) == (record, 0)


@given(st.binary(max_size=40))
def test_rubbish_gives_one_clear_error(value: bytes) -> None:
    try:
        message, version = decode_record(value)
    except MetadataParseError:
        return
    message.encode(version)
