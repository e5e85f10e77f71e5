"""The JSON form of messages: what reading it refuses, and what Kafka's has no place for."""

from typing import Any

import pytest

from kvorum.wire.errors import DecodeError, UnsupportedVersionError
from kvorum.wire.json_form import JsonOptions, fields_of, from_json, to_json
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest
from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.topic_record import TopicRecord

HEARTBEAT: dict[str, Any] = {
    "groupId": "g",
    "generationId": 1,
    "memberId": "m",
    "groupInstanceId": None,
}


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
