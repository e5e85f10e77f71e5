"""Strings that are not UTF-8 are read as Java reads them."""

import pytest
from tests.support.golden_data import READ_BY_JAVA

from kvorum.wire.headers import decode_request_header
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.list_groups import ListGroupsRequest
from kvorum.wire.primitives import decode_with_replacement


@pytest.mark.parametrize("raw", READ_BY_JAVA, ids=bytes.hex)
def test_each_flaw_is_replaced_as_java_does(raw: bytes) -> None:
    assert decode_with_replacement(raw) == READ_BY_JAVA[raw]


def test_a_string_is_read_whatever_its_bytes_in_both_encodings() -> None:
    old = HeartbeatRequest.decode(b"\0\x02a\xff\0\0\0\x07\0\0", 0)
    assert (old.group_id, old.generation_id) == ("a\ufffd", 7)
    compact = HeartbeatRequest.decode(b"\x03\xc3\x28\0\0\0\x07\x01\0\0", 4)
    assert (compact.group_id, compact.generation_id) == ("\ufffd(", 7)


def test_an_element_of_an_array_is_read_whatever_its_bytes() -> None:
    assert ListGroupsRequest.decode(b"\x03\x02\xff\x02a\x01\0", 5).states_filter == ["\ufffd", "a"]


def test_a_client_id_is_read_whatever_its_bytes() -> None:
    header, _ = decode_request_header(b"\0\x12\0\0\0\0\0\x01\0\x02\xff\xfe")
    assert header.client_id == "\ufffd\ufffd"


def test_what_a_hostile_string_costs_grows_with_its_length_alone() -> None:
    assert decode_with_replacement(b"\xed\xa0\x80" * 10_000) == "\ufffd" * 10_000
