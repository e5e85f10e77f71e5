"""Bytes from outside, some made to cost much: one error, in linear time, with bounded memory."""

import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.golden_data import GOLDEN, READ_BY_JAVA, read_json_lines
from tests.support.random_messages import fields_with_classes
from tests.unit.peak_memory import other_threads_waiting, peak_memory_below

from kvorum.wire.api_table import MODULES
from kvorum.wire.apis import message_class
from kvorum.wire.errors import DecodeError
from kvorum.wire.headers import decode_request_header
from kvorum.wire.json_form import FieldFacts
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.list_groups import ListGroupsRequest
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kvorum.wire.primitives import (
    UNCOUNTED_BYTES_MAX,
    MemoryBudget,
    Message,
    Struct,
    decode_with_replacement,
)

Step = tuple[FieldFacts, type[Struct] | None]
# Values that cannot be shared: numbers beyond the small ones, strings that are no single character.
COSTLY = {
    "bool": True, "int8": -100, "int16": -1000, "uint16": 60_000, "int32": -100_000,
    "uint32": 1 << 31, "int64": 1 << 62, "float64": 1.5, "string": "ab", "uuid": b"u" * 16,
    "bytes": b"ab", "records": b"ab",
}  # fmt: skip
CHEAP = {"string": "", "bytes": b"", "uuid": bytes(16)}
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


@dataclass(frozen=True, slots=True)
class Bomb:
    """A message with one long list, at the end of `path`."""

    kind: type[Message]
    version: int
    path: tuple[Step, ...]

    @property
    def name(self) -> str:
        fields = ".".join(field.json_name for field, _ in self.path)
        return f"{self.kind.NAME} version {self.version} {fields}"

    def encode(self, count: int, *, is_costly: bool) -> bytes:
        """Return the message with `count` elements, each empty or as costly as it can be."""
        message = self.kind()
        owner: Struct = message
        for field, inner in self.path[:-1]:
            assert inner is not None
            step = cheapest(inner, self.version)
            setattr(owner, field.attribute, [step] if field.kind.startswith("[]") else step)
            owner = step
        field, inner = self.path[-1]
        element = element_of(field, inner, self.version, is_costly=is_costly)
        setattr(owner, field.attribute, [element] * count)
        return message.encode(self.version)


def element_of(
    field: FieldFacts, inner: type[Struct] | None, version: int, *, is_costly: bool
) -> Any:
    if inner is not None:
        return costly(inner, version) if is_costly else cheapest(inner, version)
    name = field.kind.removeprefix("[]")
    return COSTLY[name] if is_costly else CHEAP.get(name, 0)


def costly(kind: type[Struct], version: int) -> Struct:
    """Return a struct all of whose fields cost memory; lists stay empty."""
    made = kind()
    for field, inner in fields_with_classes(kind.__module__, kind.__name__):
        if field.is_in(version) and not field.kind.startswith("[]"):
            value = COSTLY[field.kind] if inner is None else costly(inner, version)
            setattr(made, field.attribute, value)
    return made


def cheapest(kind: type[Struct], version: int) -> Struct:
    """Return a struct that takes few bytes on the wire: no text, no element, structs null."""
    made = kind()
    for field, inner in fields_with_classes(kind.__module__, kind.__name__):
        if not field.is_in(version) or field.is_tagged_in(version):
            continue
        if field.kind.startswith("[]"):
            setattr(made, field.attribute, [])
        elif inner is not None:
            is_null = field.is_nullable_in(version)
            setattr(made, field.attribute, None if is_null else cheapest(inner, version))
        elif field.kind in {"string", "bytes", "records"}:
            setattr(made, field.attribute, "" if field.kind == "string" else b"")
    return made


def all_bombs() -> Iterator[Bomb]:
    """Yield every list of every message, in its oldest and its newest version."""
    for name in sorted(MODULES):
        kind = message_class(name)
        for version in sorted({kind.MIN_VERSION, kind.MAX_VERSION}):
            for path in lists(kind, version):
                yield Bomb(kind, version, path)


def lists(kind: type[Struct], version: int) -> Iterator[tuple[Step, ...]]:
    for field, inner in fields_with_classes(kind.__module__, kind.__name__):
        if not field.is_in(version):
            continue
        if field.kind.startswith("[]"):
            yield ((field, inner),)
        if inner is not None:
            yield from (((field, inner), *rest) for rest in lists(inner, version))


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
    with other_threads_waiting():
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
        # A thread that waits already, as the one that talks to the test runner, takes over once.
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
    data = start + _uvarint(count) + b"".join(_uvarint(tag) + b"\x00" for tag in range(count))
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
