"""Bytes from outside: one clear error, in linear time, with bounded memory."""

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.golden_data import GOLDEN, read_json_lines
from tests.unit.peak_memory import peak_memory_below
from tests.unit.wire.bombs import Bomb, all_bombs

from kvorum.wire.apis import message_class
from kvorum.wire.errors import DecodeError
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kvorum.wire.primitives import UNCOUNTED_BYTES_MAX, MemoryBudget, Message

SEEDS_EVERY = 8
BUDGET = 1 << 40
HUGE = (b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07")
ELEMENTS_PER_BOMB = 200
SLACK_BYTES = 4096
REPEATED_MEASURES = 3
SECONDS_PER_MIB_MAX = 2.0


SEEDS = [
    (message_class(line["message"]), line["version"], bytes.fromhex(line["hex"]))
    for line in list(read_json_lines(GOLDEN / "codec-corpus.jsonl.gz"))[::SEEDS_EVERY]
    if len(line["hex"]) < 400
]
"""Valid messages to damage, from all over the corpus."""


def decode_anything(kind: type[Message], data: bytes, version: int) -> Message | None:
    """Decode; anything but a message or a `DecodeError` of this message is a failure."""
    try:
        return kind.decode(data, version)
    except DecodeError as error:
        problem = error
    assert problem.what == kind.NAME
    assert str(problem).startswith(kind.NAME)
    return None


# -- damage everywhere -------------------------------------------------------------------------


def test_huge_lengths_and_counts_anywhere() -> None:
    """Put lengths of up to 2^32 wherever they fit, in messages of all kinds."""
    with peak_memory_below(16 << 20):
        for kind, version, data in SEEDS:
            for place in range(0, len(data), 5):
                for huge in HUGE:
                    decode_anything(kind, data[:place] + huge + data[place + len(huge) :], version)


@settings(max_examples=1500)
@given(
    seed=st.sampled_from(SEEDS),
    place=st.floats(0, 1),
    damage=st.binary(max_size=12),
    removed=st.integers(0, 12),
)
def test_damaged_messages(
    seed: tuple[type[Message], int, bytes], place: float, damage: bytes, removed: int
) -> None:
    kind, version, data = seed
    at = int(place * len(data))
    message = decode_anything(kind, data[:at] + damage + data[at + removed :], version)
    if message is not None:
        assert kind.decode(message.encode(version), version) == message


@settings(max_examples=1500)
@given(seed=st.sampled_from(SEEDS), data=st.binary(max_size=300))
def test_noise(seed: tuple[type[Message], int, bytes], data: bytes) -> None:
    kind, version, _ = seed
    decode_anything(kind, data, version)


# -- one by one --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "version", "data", "problem"),
    [
        (HeartbeatRequest, 4, b"\xff" * 12, "a varint has no end"),
        (HeartbeatRequest, 4, b"\xff\xff\xff\xff\xff\x01", "a varint has no end"),
        (HeartbeatRequest, 4, b"\x80\x80\x80\x80", "ends too early"),
        (HeartbeatRequest, 4, b"\x00", "non-nullable groupId is null"),
        (HeartbeatRequest, 4, b"\x05abc", "groupId of length 4, but 3 bytes are left"),
        (HeartbeatRequest, 4, b"\x81\x80\x02", "a string has 32768 bytes, more than 32767"),
        (HeartbeatRequest, 0, b"\xff\xff", "non-nullable groupId is null"),
        (HeartbeatRequest, 0, b"\xff\xfe", "groupId has length -2"),
        (HeartbeatRequest, 0, b"\x7f\xffab", "groupId of length 32767, but 2 bytes are left"),
        (MetadataRequest, 0, b"\xff\xff\xff\xff", "non-nullable topics is null"),
        (MetadataRequest, 1, b"\x7f\xff\xff\xff", "topics of length"),
        (CreateTopicsRequest, 7, b"\xff\xff\xff\xff\x0f", "topics of length"),
        (CreateTopicsRequest, 7, b"\x00", "non-nullable topics is null"),
        (ApiVersionsRequest, 3, b"\x01\x01\x80\x80\x80\x80\x08", "ends too early"),
        (ApiVersionsRequest, 3, b"\x01\x01\x01\x05\x09ab", "tag 5 of 9 bytes, but 2 are left"),
        (ApiVersionsRequest, 3, b"\x01\x01\x02\x05\x00\x05\x00", "tag 5 comes after tag 5"),
        (ApiVersionsRequest, 3, b"\x01\x01\x02\x05\x00\x04\x00", "tag 4 comes after tag 5"),
        (FetchRequest, 12, b"\0" * 25 + b"\x01\x01\x01\x01\x01\0", "tag 1 does not exist"),
        (ApiVersionsResponse, 3, b"\0\0\x01\0\0\0\0\x01\x01\x09" + bytes(9), "tag 1 ends at"),
        (ApiVersionsResponse, 3, b"\0\0\x01\0\0\0\0\x01\x01\x07" + bytes(8), "tag 1 ends at"),
    ],
)
def test_what_is_wrong_is_said(
    kind: type[Message], version: int, data: bytes, problem: str
) -> None:
    with pytest.raises(DecodeError, match=problem) as caught:
        kind.decode(data, version)
    assert caught.value.what == kind.NAME


def test_an_error_says_where_it_is() -> None:
    with pytest.raises(DecodeError) as caught:
        HeartbeatRequest.decode(b"\x02g\0\0\0\x01\x05abc", 4)
    assert caught.value.offset == 7
    assert str(caught.value) == (
        "HeartbeatRequest at byte 7: memberId of length 4, but 3 bytes are left"
    )


# -- memory ------------------------------------------------------------------------------------


def read_measured(bomb: Bomb, data: bytes) -> tuple[int, int, Message]:
    """Read a message; return what was counted, what was taken at most, and the message."""
    budget = MemoryBudget(BUDGET)
    read = bomb.kind.READERS[bomb.kind.version_index(bomb.version)]
    tracemalloc.start()
    message, _ = read(data, 0, budget)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return BUDGET - budget.left, peak, message


@pytest.mark.parametrize("is_costly", [False, True], ids=["cheapest", "costly"])
def test_no_list_takes_more_than_it_is_charged(is_costly: bool) -> None:
    """Readers count at least what CPython takes, for every list of every message."""
    lists, worst = 0, 0.0
    for bomb in all_bombs():
        data = bomb.encode(ELEMENTS_PER_BOMB, is_costly=is_costly)
        charged, peak, message = read_measured(bomb, data)
        # Another thread of the process, as the one that talks to the test runner, is measured
        # as well; it does not do the same thing every time, and readers do.
        for _ in range(REPEATED_MEASURES):
            if peak <= charged + len(data) + SLACK_BYTES:
                break
            charged, peak, message = read_measured(bomb, data)
        assert message.encode(bomb.version) == data
        assert peak <= charged + len(data) + SLACK_BYTES, bomb.name
        lists += 1
        worst = max(worst, peak / len(data))
    assert lists > 500
    # Messages that are too short to be counted cannot take too much.
    assert worst * UNCOUNTED_BYTES_MAX <= 16 << 20


def bombs_named(*names: str) -> list[Bomb]:
    found = [bomb for bomb in all_bombs() if bomb.name in names]
    assert len(found) == len(names)
    return found


BOMBS = bombs_named(
    "ListOffsetsRequest version 1 topics",
    "CreateTopicsRequest version 7 topics.assignments.brokerIds",
    "AlterClientQuotasRequest version 1 entries",
    "DeleteGroupsRequest version 3 groupsNames",
    "StreamsGroupHeartbeatRequest version 0 topology.subtopologies.copartitionGroups",
    "MetadataResponse version 13 topics.partitions",
    "AlterPartitionRequest version 2 topics.partitions.newIsr",
    "BrokerRegistrationRequest version 4 logDirs",
)


@pytest.mark.parametrize("bomb", BOMBS, ids=[bomb.name for bomb in BOMBS])
@pytest.mark.parametrize(
    ("length", "is_costly"),
    [(UNCOUNTED_BYTES_MAX - 1000, False), (1_000_000, False), (1_000_000, True)],
)
def test_long_lists_take_bounded_memory_and_time(bomb: Bomb, length: int, is_costly: bool) -> None:
    """Whole or cut off, short or long: what is not refused at once stays within bounds."""
    one, many = (len(bomb.encode(count, is_costly=is_costly)) for count in (1, 1001))
    data = bomb.encode(length * 1000 // (many - one), is_costly=is_costly)
    started = time.process_time()
    decode_anything(bomb.kind, data, bomb.version)
    assert time.process_time() - started < SECONDS_PER_MIB_MAX
    with peak_memory_below(4 * len(data) + (16 << 20)):
        decode_anything(bomb.kind, data[:-1], bomb.version)


def test_many_unknown_tags_take_bounded_memory() -> None:
    start = ApiVersionsRequest(client_software_name="x").encode(3)[:-1]
    count = 400_000
    body = b"".join(_uvarint(tag) + b"\x00" for tag in range(count))
    data = start + _uvarint(count) + body
    with peak_memory_below(4 * len(data) + (16 << 20)), pytest.raises(DecodeError, match="memory"):
        ApiVersionsRequest.decode(data, 3)


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def test_a_trusted_peer_may_send_more() -> None:
    partitions = [
        MetadataResponsePartition(
            partition_index=index, leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        for index in range(60_000)
    ]
    cluster = MetadataResponse(topics=[MetadataResponseTopic(partitions=partitions)])
    data = cluster.encode(12)
    with pytest.raises(DecodeError, match="takes too much memory for its length"):
        MetadataResponse.decode(data, 12)
    assert MetadataResponse.decode(data, 12, memory_bytes_max=1 << 30) == cluster
    with pytest.raises(DecodeError, match="takes too much memory for its length"):
        MetadataResponse.decode(data, 12, memory_bytes_max=1 << 20)


def test_record_blobs_are_not_copied() -> None:
    blob = bytes(8 << 20)
    partition = FetchResponse.PartitionData(records=blob)
    topic = FetchResponse.FetchableTopicResponse(partitions=[partition])
    data = FetchResponse(responses=[topic]).encode(13)
    with peak_memory_below(64 << 10):
        response = FetchResponse.decode(data, 13)
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is data
    assert records == blob
