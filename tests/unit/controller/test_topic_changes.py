"""DeleteTopics and CreatePartitions: every refusal with Kafka's code and message."""

from dataclasses import replace

import pytest
from tests.support.controller_under_test import ControllerUnderTest, started_cluster

from kvorum.controller.apis.create_partitions import model_partition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.uuid_text import ZERO_UUID

Assignment = CreatePartitionsRequest.CreatePartitionsAssignment
Topic = CreatePartitionsRequest.CreatePartitionsTopic
State = DeleteTopicsRequest.DeleteTopicState
Answer = tuple[str | None, bytes, int, str | None]

UNKNOWN_TOPIC = "This server does not host this topic-partition."
UNKNOWN_ID = "This server does not host this topic ID."


def delete(controller: ControllerUnderTest, *topics: State) -> set[Answer]:
    response = controller.answer(DeleteTopicsResponse, DeleteTopicsRequest(topics=list(topics)))
    return {
        (result.name, result.topic_id, result.error_code, result.error_message)
        for result in response.responses
    }


@pytest.fixture
def controller() -> ControllerUnderTest:
    cluster = started_cluster()
    for name in ("a", "b", "c"):
        cluster.create_topic(name, partitions=2, replicas=2)
    return cluster


def test_delete_by_name_and_by_id(controller: ControllerUnderTest) -> None:
    ids = controller.image.topics.ids
    answers = delete(controller, State(name="a"), State(name=None, topic_id=ids["b"]))
    assert answers == {("a", ids["a"], 0, None), ("b", ids["b"], 0, None)}
    assert {*map(type, controller.written)} == {RemoveTopicRecord}
    assert set(controller.image.topics.ids) == {"c"}


def test_old_versions_delete_by_name_alone(controller: ControllerUnderTest) -> None:
    request = DeleteTopicsRequest(topic_names=["a", "no"])
    response = controller.answer(DeleteTopicsResponse, request, api_version=5)
    codes = {result.name: result.error_code for result in response.responses}
    assert codes == {"a": ErrorCode.NONE, "no": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_deletions_that_are_refused(controller: ControllerUnderTest) -> None:
    a, b, c = (controller.image.topics.ids[name] for name in "abc")
    stranger = bytes([9] * 16)
    answers = delete(
        controller,
        State(name=None, topic_id=ZERO_UUID),
        State(name="c", topic_id=c),
        State(name="twice"),
        State(name="twice"),
        State(name=None, topic_id=a),
        State(name=None, topic_id=a),
        State(name="a"),
        State(name=None, topic_id=b),
        State(name="b"),
        State(name="no"),
        State(name=None, topic_id=stranger),
    )
    invalid = int(ErrorCode.INVALID_REQUEST)
    supplied = "The provided topic name maps to an ID that was already supplied."
    assert answers == {
        (None, ZERO_UUID, invalid, "Neither topic name nor id were specified."),
        ("c", c, invalid, "You may not specify both topic name and topic id."),
        ("twice", ZERO_UUID, invalid, "Duplicate topic name."),
        (None, a, invalid, "Duplicate topic id."),
        ("a", a, invalid, supplied),
        ("b", b, invalid, supplied),
        ("no", ZERO_UUID, 3, UNKNOWN_TOPIC),
        (None, stranger, 100, UNKNOWN_ID),
    }
    assert controller.last_records == ()


@pytest.mark.parametrize(
    ("deletion", "api_version", "code"),
    [
        (DeleteTopicsRequest(topic_names=["a"]), 2, ErrorCode.INVALID_REQUEST),
        (DeleteTopicsRequest(topics=[State(name="a")]), 6, ErrorCode.TOPIC_DELETION_DISABLED),
    ],
)
def test_deletion_switched_off(
    controller: ControllerUnderTest,
    deletion: DeleteTopicsRequest,
    api_version: int,
    code: ErrorCode,
) -> None:
    controller.settings = replace(controller.settings, is_topic_deletion_enabled=False)
    response = controller.answer(DeleteTopicsResponse, deletion, api_version)
    assert [result.error_code for result in response.responses] == [code]
    assert "a" in controller.image.topics.ids


def add(
    controller: ControllerUnderTest, *topics: Topic, validate_only: bool = False
) -> list[tuple[str, int, str | None]]:
    response = controller.answer(
        CreatePartitionsResponse,
        CreatePartitionsRequest(topics=list(topics), validate_only=validate_only),
    )
    return [(r.name, r.error_code, r.error_message) for r in response.results]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (Topic("no", 3, None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (Topic("a", 2, None), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        pytest.param(
            Topic("a", 1, None),
            ErrorCode.INVALID_PARTITIONS,
            "The topic a currently has 2 partition(s); 1 would not be an increase.",
        ),
        pytest.param(
            Topic("a", -5, None),
            ErrorCode.INVALID_PARTITIONS,
            "The topic a currently has 2 partition(s); -5 would not be an increase.",
        ),
        pytest.param(
            Topic("a", 4, [Assignment([1, 2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        pytest.param(
            Topic("a", 3, [Assignment([1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes a partition with 1 replica(s), but this is "
            "not consistent with previous partitions, which have 2 replica(s).",
        ),
        pytest.param(
            Topic("a", 3, [Assignment([1, 7])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
    ],
)
def test_partitions_that_are_refused(
    controller: ControllerUnderTest, topic: Topic, code: ErrorCode, message: str | None
) -> None:
    assert add(controller, topic) == [(topic.name, code, message)]
    assert controller.last_records == ()


def test_too_many_partitions_refuse_the_whole_request(controller: ControllerUnderTest) -> None:
    message = "Excessively large number of additional partitions per request."
    refused = (ErrorCode.POLICY_VIOLATION, message)
    topics = Topic("a", 6_002, None), Topic("b", 4_003, None), Topic("no", 3, None)
    assert add(controller, *topics) == [(topic.name, *refused) for topic in topics]
    assert controller.last_records == ()


def test_partitions_of_a_topic_whose_brokers_are_all_fenced(
    controller: ControllerUnderTest,
) -> None:
    for broker_id in (1, 2, 3):
        controller.heartbeat(broker_id, want_fence=True)
    problem = "All brokers are currently fenced, or have all their log directories cordoned."
    answer = ("a", ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    assert add(controller, Topic("a", 3, None)) == [answer]
    problem = (
        "All brokers specified in the manual partition assignment for partition 2 are fenced or in "
        "controlled shutdown."
    )
    answer = ("a", ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    assert add(controller, Topic("a", 3, [Assignment([1, 2])])) == [answer]


def test_added_partitions(controller: ControllerUnderTest) -> None:
    answers = add(controller, Topic("a", 5, None), Topic("b", 3, [Assignment([3, 1])]))
    assert answers == [("a", 0, None), ("b", 0, None)]
    records = [m for m in controller.written if isinstance(m, PartitionRecord)]
    assert [record.partition_id for record in records] == [2, 3, 4, 2]
    assert all(len(record.replicas) == 2 for record in records)
    assert (records[-1].replicas, records[-1].leader) == ([3, 1], 3)
    topic = controller.image.topics.by_name("a")
    assert topic is not None
    assert sorted(topic.partitions) == [0, 1, 2, 3, 4]


def test_names_that_come_twice_are_refused_first(controller: ControllerUnderTest) -> None:
    answers = add(controller, Topic("a", 3, None), Topic("b", 3, None), Topic("a", 4, None))
    assert answers == [("a", ErrorCode.INVALID_REQUEST, "Duplicate topic name."), ("b", 0, None)]


def test_validate_only_partitions(controller: ControllerUnderTest) -> None:
    assert add(controller, Topic("a", 3, None), validate_only=True) == [("a", 0, None)]
    assert controller.last_records == ()


@pytest.mark.parametrize(
    ("partition_count", "model"),
    [(1, 0), (2, 0), (3, 2), (5, 2), (6, 5), (10, 5), (11, 0), (14, 13), (22, 0), (35, 34)],
)
def test_new_partitions_are_like_the_one_that_kafkas_hash_table_yields_first(
    partition_count: int, model: int
) -> None:
    assert model_partition(partition_count) == model
