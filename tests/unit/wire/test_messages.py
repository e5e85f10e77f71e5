"""The promises of messages to their makers: defaults, equality, refusals, tags, the JSON form."""

import subprocess
import sys
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.random_messages import random_message
from tests.support.waiting import PATIENCE_S

from kvorum.wire.api_table import MODULES
from kvorum.wire.apis import (
    API_SPECS,
    METADATA_RECORDS,
    message_class,
    record_class,
    request_class,
    response_class,
)
from kvorum.wire.errors import DecodeError, EncodeError, UnsupportedVersionError, WireError
from kvorum.wire.json_form import JsonOptions, fields_of, from_json, to_json
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.messages.create_topics import CreateTopicsRequest
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import JoinGroupRequest
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.vote import VoteRequest
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.primitives import NEVER, Message
from kvorum.wire.quorum_reassignment_tag import REASSIGNMENT_TAG, add_reassignment, reassignment_in
from kvorum.wire.uuid_text import ZERO_UUID

PAIRS = [
    (message_class(name), version)
    for name in sorted(MODULES)
    for version in range(message_class(name).MIN_VERSION, message_class(name).MAX_VERSION + 1)
]
HEARTBEAT: dict[str, Any] = {
    "groupId": "g",
    "generationId": 1,
    "memberId": "m",
    "groupInstanceId": None,
}
TOLD = QuorumReassignment(
    targets=[
        QuorumReassignment.Target(4, bytes(range(16)), 90, 1900),
        QuorumReassignment.Target(5),
    ],
    block_reason=3,
    block_text="target 5 does not fetch from the leader",
)


@settings(max_examples=600)
@given(pair=st.sampled_from(PAIRS), seed=st.integers(0, 2**32))
def test_whatever_is_written_is_read_back(pair: tuple[type[Message], int], seed: int) -> None:
    kind, version = pair
    message = random_message(kind, version, Random(seed))
    data = message.encode(version)
    found = kind.decode(data, version)
    assert found == message
    assert found.encode(version) == data
    assert kind.decode_from(b"before" + data + b"after", 6, version) == (message, 6 + len(data))
    assert kind.decode(memoryview(data), version) == kind.decode(bytearray(data), version)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_message_at_its_defaults(name: str) -> None:
    kind = message_class(name)
    assert (kind.NAME, kind.__name__) == (name, name)
    assert 0 <= kind.MIN_VERSION <= kind.MAX_VERSION
    assert kind.FLEXIBLE_FROM == NEVER or kind.FLEXIBLE_FROM <= kind.MAX_VERSION
    message = kind()
    assert message == kind()
    assert repr(message).startswith(f"{name}(")
    assert deepcopy(message) == message
    assert not hasattr(message, "__dict__")


def test_keys_lead_to_classes() -> None:
    for key, spec in API_SPECS.items():
        request, response = request_class(key), response_class(key)
        assert (f"{spec.name}Request", key) == (request.NAME, request.API_KEY)
        assert (f"{spec.name}Response", key) == (response.NAME, response.API_KEY)
        for kind in (request, response):
            assert (spec.min_version, spec.max_version) == (kind.MIN_VERSION, kind.MAX_VERSION)
            assert spec.flexible_from == kind.FLEXIBLE_FROM
    for key, name in METADATA_RECORDS.items():
        assert (name, key) == (record_class(key).NAME, record_class(key).API_KEY)
    with pytest.raises(KeyError):
        request_class(4)
    with pytest.raises(KeyError):
        record_class(100)


# -- building ----------------------------------------------------------------------------------


def test_arguments_stand_in_the_order_of_the_schema() -> None:
    assert HeartbeatRequest("g", 3, "m", "i") == HeartbeatRequest(
        group_id="g", generation_id=3, member_id="m", group_instance_id="i"
    )


def test_defaults_are_the_schemas_and_never_shared() -> None:
    request = JoinGroupRequest()
    assert (request.rebalance_timeout_ms, request.group_instance_id) == (-1, None)
    assert FetchRequest().max_bytes == 2**31 - 1
    first, second = CreateTopicsRequest(), CreateTopicsRequest()
    first.topics.append(CreateTopicsRequest.CreatableTopic(name="t"))
    assert second.topics == []
    assert CreateTopicsRequest().topics == []
    assert TopicRecord().topic_id == ZERO_UUID


def test_null_is_not_the_empty_list() -> None:
    assert MetadataRequest().topics == []
    assert MetadataRequest(topics=None).topics is None
    data = MetadataRequest(topics=None).encode(9)
    assert MetadataRequest.decode(data, 9).topics is None
    assert MetadataRequest.decode(MetadataRequest(topics=[]).encode(9), 9).topics == []


def test_structs_are_reached_through_their_message() -> None:
    partition = VoteRequest.PartitionData(partition_index=1)
    request = VoteRequest(topics=[VoteRequest.TopicData("t", [partition])])
    assert VoteRequest.decode(request.encode(2), 2).topics[0].partitions[0].partition_index == 1
    assert type(partition).__name__ == "VoteRequestPartitionData"


def test_structs_that_are_left_out_of_the_wire_have_defaults() -> None:
    topic = FetchResponse.FetchableTopicResponse(partitions=[FetchResponse.PartitionData()])
    data = FetchResponse(responses=[topic]).encode(13)
    found = FetchResponse.decode(data, 13).responses[0].partitions[0]
    assert found.diverging_epoch == FetchResponse.EpochEndOffset()
    found.diverging_epoch.epoch = 5
    assert found.diverging_epoch.epoch == 5
    assert FetchResponse.PartitionData().diverging_epoch.epoch == -1
    with pytest.raises(AttributeError):
        found.no_such_field  # type: ignore[attr-defined]  # noqa: B018 - what a typing error does


def test_equality_is_by_class_and_fields() -> None:
    assert HeartbeatResponse(error_code=1) == HeartbeatResponse(error_code=1)
    assert HeartbeatResponse(error_code=1) != HeartbeatResponse(error_code=2)
    assert HeartbeatResponse() != HeartbeatRequest()
    assert HeartbeatResponse() != HeartbeatResponse(unknown_tagged_fields=[(7, b"")])
    assert HeartbeatResponse() == HeartbeatResponse(unknown_tagged_fields=[])
    with pytest.raises(TypeError):
        hash(HeartbeatResponse())


def test_repr_names_every_field() -> None:
    assert repr(HeartbeatRequest("g", 1, "m", unknown_tagged_fields=[(9, b"x")])) == (
        "HeartbeatRequest(group_id='g', generation_id=1, member_id='m', group_instance_id=None, "
        "unknown_tagged_fields=[(9, b'x')])"
    )


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [-1, 5, 99])
def test_a_version_that_does_not_exist(version: int) -> None:
    text = f"HeartbeatRequest has no version {version}; it has 0 to 4"
    with pytest.raises(UnsupportedVersionError, match=text):
        HeartbeatRequest().encode(version)
    with pytest.raises(UnsupportedVersionError, match=text):
        HeartbeatRequest.decode(b"", version)


def test_what_a_version_cannot_carry_is_refused_in_kafkas_words() -> None:
    request = BrokerHeartbeatRequest(offline_log_dirs=[bytes(15) + b"\x01"])
    with pytest.raises(
        UnsupportedVersionError,
        match=r"^Attempted to write a non-default offlineLogDirs at version 0$",
    ):
        request.encode(0)
    assert BrokerHeartbeatRequest.decode(request.encode(1), 1) == request


def test_what_may_be_ignored_is_lost_silently() -> None:
    request = JoinGroupRequest(reason="because")
    assert JoinGroupRequest.decode(request.encode(8), 8).reason == "because"
    assert JoinGroupRequest.decode(request.encode(7), 7).reason is None


@pytest.mark.parametrize(
    ("message", "version", "problem"),
    [
        (HeartbeatRequest("x" * 32_768), 4, "a string has 32768 bytes, more than 32767"),
        (HeartbeatRequest("x" * 32_768), 0, "HeartbeatRequest version 0"),
        (HeartbeatRequest("\u20ac" * 10_923), 4, "a string has 32769 bytes, more than 32767"),
        (HeartbeatRequest(generation_id=1 << 31), 4, "HeartbeatRequest version 4"),
        (HeartbeatResponse(error_code=-40_000), 4, "HeartbeatResponse version 4"),
        (HeartbeatRequest(group_id=None), 4, "HeartbeatRequest version 4"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the point
        (HeartbeatRequest(group_id=b"g"), 4, "HeartbeatRequest version 4"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the point
        (HeartbeatRequest("\ud800"), 4, "HeartbeatRequest version 4"),
        (TopicRecord("t", b"short"), 0, "a uuid has 16 bytes, not 5"),
        (MetadataRequest(topics=None), 0, "non-nullable field topics is null"),
    ],
)
def test_values_that_the_schema_does_not_allow(
    message: Message, version: int, problem: str
) -> None:
    with pytest.raises(EncodeError, match=problem):
        message.encode(version)


def test_a_string_of_the_longest_length() -> None:
    for version in (0, 4):
        request = HeartbeatRequest("x" * 32_767)
        assert HeartbeatRequest.decode(request.encode(version), version) == request


def test_every_wire_error_has_a_code_for_the_peer() -> None:
    pending: list[type[WireError]] = [WireError]
    names: set[str] = set()
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        names.add(f"{kind.__name__} {kind.error_code.name}")
    assert {
        "DecodeError INVALID_REQUEST",
        "CorruptBatchError CORRUPT_MESSAGE",
        "UnsupportedVersionError UNSUPPORTED_VERSION",
    } < names


# -- tags --------------------------------------------------------------------------------------


def test_unknown_tags_are_kept_in_the_order_of_tags_at_every_depth() -> None:
    deep = FetchResponse.PartitionData(unknown_tagged_fields=[(70, b"deep")])
    deep.current_leader.leader_id = 3
    deep.current_leader.unknown_tagged_fields = [(1, b"deeper")]
    topic = FetchResponse.FetchableTopicResponse(
        partitions=[deep], unknown_tagged_fields=[(5, b"")]
    )
    response = FetchResponse(responses=[topic], unknown_tagged_fields=[(300, b"x" * 200)])
    data = response.encode(16)
    found = FetchResponse.decode(data, 16)
    assert found == response
    assert found.encode(16) == data
    partition = found.responses[0].partitions[0]
    assert partition.unknown_tagged_fields == [(70, b"deep")]
    assert partition.current_leader.unknown_tagged_fields == [(1, b"deeper")]


def test_tags_are_written_in_their_order_whatever_the_order_given() -> None:
    given_tags = [(9, b"nine"), (4, b"four")]
    data = HeartbeatResponse(unknown_tagged_fields=given_tags).encode(4)
    assert data == bytes(6) + b"\x02\x04\x04four\x09\x04nine"
    assert given_tags == [(9, b"nine"), (4, b"four")]


def test_a_tag_twice_is_refused() -> None:
    with pytest.raises(EncodeError, match="tag 4 is written twice"):
        HeartbeatResponse(unknown_tagged_fields=[(4, b""), (4, b"")]).encode(4)
    response = FetchResponse(
        node_endpoints=[FetchResponse.NodeEndpoint()], unknown_tagged_fields=[(0, b"")]
    )
    with pytest.raises(EncodeError, match="tag 0 is written twice"):
        response.encode(16)


def test_tags_are_refused_in_versions_without_tags() -> None:
    with pytest.raises(UnsupportedVersionError, match="does not support them"):
        HeartbeatResponse(unknown_tagged_fields=[(4, b"")]).encode(3)


def test_tagged_fields_at_their_default_take_no_room() -> None:
    assert FetchResponse().encode(16) == b"\0" * 4 + b"\0\0" + b"\0" * 4 + b"\x01\x00"
    assert MetadataResponse(topics=[MetadataResponseTopic()]).encode(12).endswith(b"\0")


# -- imports -----------------------------------------------------------------------------------


@pytest.mark.process
def test_one_message_brings_no_other_with_it() -> None:
    program = (
        "import sys; import kvorum.wire.messages.fetch\n"
        "print(*sorted(name for name in sys.modules if name.startswith('kvorum.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.split() == [
        "kvorum.wire",
        "kvorum.wire.error_codes",
        "kvorum.wire.errors",
        "kvorum.wire.java_base64",
        "kvorum.wire.messages",
        "kvorum.wire.messages.fetch",
        "kvorum.wire.primitives",
        "kvorum.wire.uuid_text",
    ]


def test_keys_are_kafkas_in_the_order_of_the_schema() -> None:
    json = to_json(HeartbeatRequest("g", 1, "m"), 4)
    assert json == HEARTBEAT
    assert list(json) == list(HEARTBEAT)
    assert from_json(HeartbeatRequest, HEARTBEAT, 4) == HeartbeatRequest("g", 1, "m")


def test_fields_of_other_versions_are_left_out() -> None:
    assert "groupInstanceId" not in to_json(HeartbeatRequest(), 0)


def test_uuids_are_22_characters_and_bytes_are_base64() -> None:
    record = TopicRecord("t", bytes(15) + b"\x01")
    assert to_json(record, 0) == {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    assert from_json(TopicRecord, to_json(record, 0), 0) == record


def test_tagged_fields_at_their_default_are_left_out() -> None:
    request = BrokerHeartbeatRequest(1)
    assert "offlineLogDirs" not in to_json(request, 1)
    request.offline_log_dirs = [bytes(16)]
    json = to_json(request, 1)
    assert json["offlineLogDirs"] == ["AAAAAAAAAAAAAAAAAAAAAA"]
    assert from_json(BrokerHeartbeatRequest, json, 1) == request


def test_records_may_be_given_by_their_size() -> None:
    partition = FetchResponse.PartitionData(records=b"abc")
    topic = FetchResponse.FetchableTopicResponse(partitions=[partition])
    response = FetchResponse(responses=[topic])
    assert to_json(response, 13)["responses"][0]["partitions"][0]["records"] == "YWJj"
    options = JsonOptions(is_with_records=False)
    sized = to_json(response, 13, options)["responses"][0]["partitions"][0]
    assert "records" not in sized
    assert sized["recordsSizeInBytes"] == 3


def test_what_a_version_cannot_carry_is_refused() -> None:
    request = BrokerHeartbeatRequest(offline_log_dirs=[bytes(16)])
    with pytest.raises(UnsupportedVersionError, match="non-default offlineLogDirs at version 0"):
        to_json(request, 0)
    with pytest.raises(UnsupportedVersionError, match="has no version 9"):
        to_json(request, 9)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"groupId": 7}, "field 'groupId' is no string: 7"),
        ({"groupId": None}, "field 'groupId' may not be null"),
        ({"generationId": "1"}, "field 'generationId' is no int32: '1'"),
        ({"generationId": True}, "field 'generationId' is no int32: True"),
        ({"generationId": 1.5}, "field 'generationId' is no int32: 1.5"),
    ],
)
def test_values_of_the_wrong_type(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        from_json(HeartbeatRequest, HEARTBEAT | changes, 4)


def test_a_missing_field() -> None:
    json = {key: value for key, value in HEARTBEAT.items() if key != "memberId"}
    with pytest.raises(DecodeError, match="unable to locate field 'memberId'"):
        from_json(HeartbeatRequest, json, 4)


@pytest.mark.parametrize("json", [None, [], "text", 5])
def test_anything_that_is_not_an_object(json: Any) -> None:
    with pytest.raises(DecodeError, match="expected a JSON object"):
        from_json(HeartbeatRequest, json, 4)


@pytest.mark.parametrize("topics", [{}, "text", 5, [5]])
def test_anything_that_is_not_an_array_of_objects(topics: Any) -> None:
    with pytest.raises(DecodeError):
        from_json(DescribeQuorumRequest, {"topics": topics}, 2)


@pytest.mark.parametrize("uuid", ["", "short", "!" * 22, "A" * 25, 5])
def test_anything_that_is_not_a_uuid(uuid: Any) -> None:
    with pytest.raises(DecodeError, match="field 'topicId' is no uuid"):
        from_json(TopicRecord, {"name": "t", "topicId": uuid}, 0)


def test_the_facts_about_fields_are_made_once() -> None:
    assert fields_of(TopicRecord) is fields_of(TopicRecord)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_it_survives_every_version_of_the_response(version: int) -> None:
    partition = DescribeQuorumResponse.PartitionData(leader_id=1, unknown_tagged_fields=[(9, b"x")])
    add_reassignment(partition, TOLD)
    topic = DescribeQuorumResponse.TopicData("__cluster_metadata", [partition])
    encoded = DescribeQuorumResponse(topics=[topic]).encode(version)
    read = DescribeQuorumResponse.decode(encoded, version).topics[0].partitions[0]
    assert reassignment_in(read) == TOLD
    assert read.leader_id == 1
    assert read.unknown_tagged_fields is not None
    assert [tag for tag, _ in read.unknown_tagged_fields] == [9, REASSIGNMENT_TAG]


@pytest.mark.parametrize("tags", [None, [], [(9, b"x")], [(REASSIGNMENT_TAG, b"\xff")]])
def test_a_partition_without_a_readable_tag_has_no_reassignment(
    tags: list[tuple[int, bytes]] | None,
) -> None:
    assert reassignment_in(DescribeQuorumResponse.PartitionData(unknown_tagged_fields=tags)) is None
