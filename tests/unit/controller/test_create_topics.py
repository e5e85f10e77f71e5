"""CreateTopics: every refusal with Kafka's code and message, and what is written otherwise."""

from dataclasses import replace

import pytest
from tests.support.controller_under_test import ControllerUnderTest, directory_of, started_cluster

from kvorum.controller.new_partitions import SEPARATORS_MAX, CollidingNames
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.uuid_text import ZERO_UUID

Assignment = CreateTopicsRequest.CreatableReplicaAssignment
Topic = CreateTopicsRequest.CreatableTopic
Config = CreateTopicsRequest.CreatableTopicConfig


@pytest.fixture
def controller() -> ControllerUnderTest:
    return started_cluster()


def create(
    controller: ControllerUnderTest, *topics: Topic, validate_only: bool = False
) -> list[CreateTopicsResponse.CreatableTopicResult]:
    return controller.answer(
        CreateTopicsResponse, CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    ).topics


def assigned(*replicas: list[int], **changes: int) -> Topic:
    return Topic(
        name="t",
        num_partitions=changes.get("num_partitions", -1),
        replication_factor=changes.get("replication_factor", -1),
        assignments=[Assignment(index, brokers) for index, brokers in enumerate(replicas)],
    )


def named(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Topic:
    """Return a wish for a topic; the dots of keys are written as underscores."""
    wanted = [Config(key.replace("_", "."), value) for key, value in configs.items()]
    return Topic(name, partitions, replicas, configs=wanted)


OTHER_CHARACTERS = (
    "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", f"'a b' {OTHER_CHARACTERS}"),
        ("ärger", f"'ärger' {OTHER_CHARACTERS}"),
    ],
    ids=repr,
)
def test_names_that_are_refused(controller: ControllerUnderTest, name: str, problem: str) -> None:
    (result,) = create(controller, named(name))
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message == f"Topic name is invalid: {problem}"
    assert controller.last_records == ()


NO_FACTOR = "Replication factor must be larger than 0, or -1 to use the default value."


NO_COUNT = "Number of partitions was set to an invalid non-positive value."


REFUSALS = [
    (
        named("old.topic"),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'old.topic' collides with existing topic: old_topic",
    ),
    (named("old_topic"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'old_topic' already exists."),
    (named("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, NO_FACTOR),
    (named("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, NO_FACTOR),
    (named("t", 0, 1), ErrorCode.INVALID_PARTITIONS, NO_COUNT),
    (named("t", -2, 1), ErrorCode.INVALID_PARTITIONS, NO_COUNT),
    (
        named("t", 1, 4),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        (
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 "
            "cannot be reached because only 3 broker(s) are registered or some brokers have all "
            "their log directories cordoned."
        ),
    ),
    (
        assigned([1], replication_factor=1),
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    ),
    (
        assigned([1], num_partitions=1),
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    (
        Topic("t", -1, -1, [Assignment(0, [1]), Assignment(0, [2])]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Found multiple manual partition assignments for partition 0",
    ),
    (
        assigned([]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    ),
    (
        assigned([1, 9]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    (
        assigned([2, 1, 2]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes the broker 2 more than once.",
    ),
    (
        assigned([1, 2], [3]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        (
            "The manual partition assignment includes a partition with 1 replica(s), but this is "
            "not consistent with previous partitions, which have 2 replica(s)."
        ),
    ),
    (
        Topic("t", -1, -1, [Assignment(1, [1])]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    (
        named("t", retention_ms=None, a=None),
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: retention.ms,a",
    ),
    (named("t", no_such="1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
    (
        named("t", retention_ms="soon"),
        ErrorCode.INVALID_CONFIG,
        "Invalid value soon for configuration retention.ms: Not a number of type LONG",
    ),
    (
        named("__cluster_metadata"),
        ErrorCode.INVALID_REQUEST,
        "Creation of internal topic __cluster_metadata is prohibited.",
    ),
]


def refusal(controller: ControllerUnderTest, topic: Topic, code: ErrorCode) -> str | None:
    """Return why a topic is not created, for which nothing is written."""
    (result,) = create(controller, topic)
    assert result.error_code == code
    assert result.topic_id == ZERO_UUID
    assert (result.num_partitions, result.replication_factor) == (-1, -1)
    assert controller.last_records == ()
    return result.error_message


@pytest.mark.parametrize(("topic", "code", "message"), REFUSALS)
def test_refusals_are_kafkas_and_write_nothing(topic: Topic, code: ErrorCode, message: str) -> None:
    controller = started_cluster()
    controller.create_topic("old_topic")
    assert refusal(controller, topic, code) == message


def test_a_topic_without_brokers() -> None:
    controller = started_cluster(brokers=0)
    assert refusal(controller, named("t"), ErrorCode.INVALID_REPLICATION_FACTOR) == (
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have "
        "all their log directories cordoned."
    )


def test_a_manual_assignment_to_fenced_brokers() -> None:
    controller = started_cluster(brokers=1)
    controller.register(2)
    assert refusal(controller, assigned([2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT) == (
        "All brokers specified in the manual partition assignment for partition 0 are fenced or "
        "in controlled shutdown."
    )


def test_a_manual_assignment_to_a_broker_whose_directories_are_all_cordoned() -> None:
    controller = started_cluster(brokers=2)
    controller.heartbeat(2, cordoned_log_dirs=[directory_of(2)])
    assert refusal(controller, assigned([1, 2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT) == (
        "The manual partition assignment includes broker 2, but all its log directories are "
        "cordoned."
    )


def test_what_is_written(controller: ControllerUnderTest) -> None:
    (result,) = create(controller, named("t", 2, 3, min_insync_replicas="2", retention_ms="1000"))
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == (2, 3)
    messages = controller.written
    assert [*map(type, messages)] == [
        TopicRecord,
        ConfigRecord,
        ConfigRecord,
        ClearElrRecord,
        PartitionRecord,
        PartitionRecord,
    ]
    assert messages[0] == TopicRecord(name="t", topic_id=result.topic_id)
    assert messages[3] == ClearElrRecord(topic_name="t")
    for index, message in enumerate(messages[4:]):
        assert isinstance(message, PartitionRecord)
        assert message.partition_id == index
        assert sorted(message.replicas) == [1, 2, 3]
        assert message.isr == message.replicas
        assert message.leader == message.replicas[0]
        assert message.directories == [directory_of(replica) for replica in message.replicas]
        assert (message.leader_epoch, message.partition_epoch) == (0, 0)
    assert controller.last_records[-1][1] == 2


@pytest.mark.parametrize(
    ("version", "record_version"),
    [(MetadataVersion.V3_3_IV3, 0), (MetadataVersion.V3_7_IV2, 1), (MetadataVersion.V4_0_IV1, 2)],
)
def test_partition_records_have_the_version_of_the_level(
    version: MetadataVersion, record_version: int
) -> None:
    controller = started_cluster(version=version)
    controller.create_topic("t")
    assert controller.last_records[-1][1] == record_version


def test_defaults_come_from_the_controllers_own_configuration() -> None:
    controller = started_cluster()
    controller.settings = replace(
        controller.settings, partitions_default=5, replication_factor_default=2
    )
    (result,) = create(controller, named("t", -1, -1))
    assert (result.num_partitions, result.replication_factor) == (5, 2)


def test_fenced_replicas_are_not_in_sync() -> None:
    controller = started_cluster(brokers=2)
    controller.register(3)
    create(controller, assigned([3, 2, 1]))
    assert controller.partition("t").isr == (2, 1)
    assert controller.partition("t").leader == 2


def test_validate_only_answers_the_same_and_writes_nothing(controller: ControllerUnderTest) -> None:
    good, bad = create(controller, named("t", 2, 3), named("old topic"), validate_only=True)
    assert (good.error_code, good.num_partitions) == (ErrorCode.NONE, 2)
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert controller.last_records == ()


def test_order_of_the_answers_and_duplicates(controller: ControllerUnderTest) -> None:
    names = ("__cluster_metadata", "twice", "b", "twice", "a", "twice")
    results = create(controller, *map(named, names))
    assert [(result.name, result.error_code) for result in results] == [
        ("b", ErrorCode.NONE),
        ("a", ErrorCode.NONE),
        ("twice", ErrorCode.INVALID_REQUEST),
        ("__cluster_metadata", ErrorCode.INVALID_REQUEST),
    ]
    assert results[2].error_message == "Duplicate topic name."
    assert set(controller.image.topics.ids) == {"a", "b"}


def test_too_many_partitions_refuse_the_whole_request(controller: ControllerUnderTest) -> None:
    results = create(controller, named("small"), named("large", 10_000, 1))
    message = "Excessively large number of partitions per request."
    expected = [(ErrorCode.POLICY_VIOLATION, message)] * 2
    assert [(result.error_code, result.error_message) for result in results] == expected
    assert controller.last_records == ()


def test_too_many_records_refuse_the_whole_request() -> None:
    refused = refusal(started_cluster(), named("t", 10_000, 1), ErrorCode.POLICY_VIOLATION)
    assert refused == "Unable to perform excessively large batch operation."


def test_as_many_records_as_one_request_may_write(controller: ControllerUnderTest) -> None:
    (result,) = create(controller, named("t", 9_999, 2))
    assert result.error_code == ErrorCode.NONE
    assert len(controller.last_records) == 10_000


ALL_BROKERS, DEFAULT, FILE, TOPIC = 3, 5, 4, 1


@pytest.mark.parametrize(
    ("static", "name", "value", "source"),
    [
        ({}, "cleanup.policy", "delete", DEFAULT),
        ({}, "retention.ms", "1000", TOPIC),
        ({}, "min.insync.replicas", "1", ALL_BROKERS),
        ({"log.retention.bytes": "77"}, "retention.bytes", "77", FILE),
        ({"log.roll.hours": "2"}, "segment.ms", "7200000", FILE),
        ({}, "max.message.bytes", "1048588", DEFAULT),
    ],
)
def test_effective_configs_of_the_new_topic(
    controller: ControllerUnderTest, static: dict[str, str], name: str, value: str, source: int
) -> None:
    controller.settings = replace(controller.settings, static_configs=static)
    (result,) = create(controller, named("t", retention_ms="1000"))
    assert result.configs is not None
    names = [config.name for config in result.configs]
    assert names == sorted(names)
    (found,) = [config for config in result.configs if config.name == name]
    assert (found.value, found.config_source) == (value, source)
    assert (found.read_only, found.is_sensitive) == (False, False)


def test_hours_that_are_not_a_number_count_for_nothing(controller: ControllerUnderTest) -> None:
    """Controllers take any value of a broker, and Kafka's count such hours as 0."""
    controller.settings = replace(controller.settings, static_configs={"log.roll.hours": "soon"})
    (result,) = create(controller, named("t"))
    assert result.configs is not None
    assert {config.name: config.value for config in result.configs}["segment.ms"] == "0"


def test_the_same_chance_gives_the_same_records() -> None:
    first, second = started_cluster(), started_cluster()
    for controller in (first, second):
        controller.create_topic("t", partitions=20, replicas=2)
    assert first.records == second.records


def topics(*names: str) -> TopicsImage:
    records = [
        (TopicRecord(name=name, topic_id=bytes([number]) * 16), 0, number)
        for number, name in enumerate(names)
    ]
    return MetadataImage().apply_all(records).topics


@pytest.mark.parametrize("more", ["", "." * SEPARATORS_MAX], ids=["few", "many"])
@pytest.mark.parametrize(
    ("existing", "name", "expected"),
    [
        (["a_b"], "a.b", "a_b"),
        (["a.b"], "a_b", "a.b"),
        (["a-b"], "a.b", None),
        (["a_b", "a.b"], "a.b", "a.b"),
        (["x_y.z", "x.y_z"], "x_y_z", "x.y_z"),
    ],
)
def test_the_first_name_that_differs_only_in_separators_is_found(
    existing: list[str], name: str, expected: str | None, more: str
) -> None:
    names = CollidingNames(topics(*(each + more for each in existing)))
    assert names.existing(name + more) == (None if expected is None else expected + more)


def test_a_name_without_separators_collides_with_nothing() -> None:
    assert CollidingNames(topics("ab", "a.b")).existing("ab") is None
