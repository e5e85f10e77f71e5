"""IncrementalAlterConfigs and AlterConfigs: what is written, and every refusal."""

import pytest
from tests.support.controller_under_test import ControllerUnderTest, started_cluster

from kvorum.controller.cluster_rules import ClusterRules
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Alter = IncrementalAlterConfigsRequest.AlterableConfig
Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Answer = tuple[int, str, int, str | None]


def alter(
    controller: ControllerUnderTest,
    *resources: Resource,
    validate_only: bool = False,
    is_forwarded: bool = True,
) -> list[Answer]:
    response = controller.answer(
        IncrementalAlterConfigsResponse,
        IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only),
        is_forwarded=is_forwarded,
    )
    return [
        (r.resource_type, r.resource_name, r.error_code, r.error_message)
        for r in response.responses
    ]


def replace_all(
    controller: ControllerUnderTest, resource_type: int, name: str, **values: str
) -> list[Answer]:
    configs = [
        AlterConfigsRequest.AlterableConfig(key.replace("_", "."), value)
        for key, value in values.items()
    ]
    resource = AlterConfigsRequest.AlterConfigsResource(resource_type, name, configs)
    response = controller.answer(AlterConfigsResponse, AlterConfigsRequest(resources=[resource]))
    return [
        (r.resource_type, r.resource_name, r.error_code, r.error_message)
        for r in response.responses
    ]


OK = [(TOPIC, "t", 0, None)]
MANY_DIGITS = "9" * 5000
"""A number of more digits than Python reads."""
CHANGE = Resource(TOPIC, "t", [Alter("retention.ms", SET, "5")])


@pytest.fixture
def controller() -> ControllerUnderTest:
    cluster = started_cluster()
    cluster.create_topic("t")
    return cluster


def test_set_change_and_delete(controller: ControllerUnderTest) -> None:
    deletion = Resource(TOPIC, "t", [Alter("retention.ms", DELETE, None)])
    for change, value in ((CHANGE, "5"), (deletion, None)):
        assert alter(controller, change) == OK
        assert controller.written == [ConfigRecord(TOPIC, "t", "retention.ms", value)]
        assert alter(controller, change) == OK
        assert controller.written == []
    assert controller.image.configs.resources.get((TOPIC, "t")) is None


def test_lists_are_appended_to_and_subtracted_from(controller: ControllerUnderTest) -> None:
    def policy(operation: int, value: str) -> str | None:
        alter(controller, Resource(TOPIC, "t", [Alter("cleanup.policy", operation, value)]))
        return controller.image.configs.of_topic("t").get("cleanup.policy")

    assert policy(APPEND, "compact") == "delete,compact"
    assert policy(APPEND, "compact") == "delete,compact"
    assert policy(SUBTRACT, "delete") == "compact"
    # Java does not see what is empty after the last comma.
    assert policy(APPEND, "delete,") == "compact,delete"


def test_brokers_get_every_change_as_a_call_to_reload(controller: ControllerUnderTest) -> None:
    change = Resource(BROKER, "1", [Alter("log.cleaner.threads", SET, "2")])
    for _ in range(2):
        assert alter(controller, change) == [(BROKER, "1", 0, None)]
        assert controller.written == [ConfigRecord(BROKER, "1", "log.cleaner.threads", "2")]


def test_one_refusal_does_not_keep_the_others_back(controller: ControllerUnderTest) -> None:
    answers = alter(controller, Resource(TOPIC, "no", [Alter("retention.ms", SET, "5")]), CHANGE)
    assert answers == [(TOPIC, "no", 3, "The topic 'no' does not exist."), *OK]
    assert controller.written == [ConfigRecord(TOPIC, "t", "retention.ms", "5")]


def test_validate_only(controller: ControllerUnderTest) -> None:
    assert alter(controller, CHANGE, validate_only=True) == OK
    assert controller.written == []


def test_a_resource_named_twice_is_refused_once(controller: ControllerUnderTest) -> None:
    assert alter(controller, CHANGE, CHANGE, CHANGE) == [
        (TOPIC, "t", ErrorCode.INVALID_REQUEST, "Duplicate resource.")
    ]


REFUSALS = [
    (Resource(99, "x", []), ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 99."),
    (
        Resource(TOPIC, "t", [Alter("retention.ms", APPEND, "5")]),
        ErrorCode.INVALID_CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    (
        Resource(16, "m", [Alter("metrics", APPEND, "x")]),
        ErrorCode.INVALID_CONFIG,
        "Can't APPEND to key metrics because its type is not LIST.",
    ),
    (
        Resource(TOPIC, "t", [Alter("no.such", SUBTRACT, "5")]),
        ErrorCode.INVALID_CONFIG,
        "Can't SUBTRACT to key no.such because its type is not LIST.",
    ),
    (
        Resource(TOPIC, "t", [Alter("no.such", SET, "5")]),
        ErrorCode.INVALID_CONFIG,
        "Unknown topic config name: no.such",
    ),
    (
        Resource(TOPIC, "t", [Alter("retention.ms", SET, "x" * 32_768)]),
        ErrorCode.INVALID_CONFIG,
        (
            "The configuration value cannot be added because it exceeds the maximum value size of "
            "32767 bytes."
        ),
    ),
    (
        Resource(TOPIC, "", [Alter("retention.ms", SET, "5")]),
        ErrorCode.INVALID_REQUEST,
        "Default topic resources are not allowed.",
    ),
    (
        Resource(TOPIC, "a b", [Alter("retention.ms", SET, "5")]),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        (
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        ),
    ),
    (
        Resource(BROKER, "one", [Alter("log.cleaner.threads", SET, "5")]),
        ErrorCode.INVALID_REQUEST,
        "Unable to parse broker name as a base 10 number.",
    ),
    (
        Resource(BROKER, MANY_DIGITS, [Alter("log.cleaner.threads", SET, "5")]),
        ErrorCode.INVALID_REQUEST,
        "Unable to parse broker name as a base 10 number.",
    ),
    (
        Resource(BROKER, "-1", [Alter("log.cleaner.threads", SET, "5")]),
        ErrorCode.INVALID_REQUEST,
        "Invalid negative broker ID.",
    ),
    (
        Resource(BROKER, "77", [Alter("log.cleaner.threads", SET, "5")]),
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "No node with id 77 found.",
    ),
    (
        Resource(GROUP, "", [Alter("consumer.session.timeout.ms", SET, "45000")]),
        ErrorCode.INVALID_REQUEST,
        "Default group resources are not allowed.",
    ),
    (
        Resource(CLIENT_METRICS, "", [Alter("interval.ms", SET, "1000")]),
        ErrorCode.INVALID_REQUEST,
        "Subscription name can't be empty",
    ),
    (
        Resource(BROKER_LOGGER, MANY_DIGITS, [Alter("root", SET, "INFO")]),
        ErrorCode.INVALID_REQUEST,
        f"Node id must be an integer, but it is: {MANY_DIGITS}",
    ),
    (
        Resource(BROKER_LOGGER, "1", [Alter("root", SET, "INFO")]),
        ErrorCode.INVALID_CONFIG,
        "Logger root does not exist!",
    ),
    (
        Resource(BROKER, "1", [Alter("min.insync.replicas", SET, "2")]),
        ErrorCode.INVALID_CONFIG,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    ),
    (
        Resource(BROKER, "", [Alter("min.insync.replicas", DELETE, None)]),
        ErrorCode.INVALID_CONFIG,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    ),
]


@pytest.mark.parametrize(("resource", "code", "message"), REFUSALS)
def test_refusals_are_kafkas_and_write_nothing(
    controller: ControllerUnderTest, resource: Resource, code: ErrorCode, message: str
) -> None:
    (answer,) = alter(controller, resource)
    assert answer[2:] == (code, message)
    assert controller.written == []


def test_an_operation_that_does_not_exist_fails_the_whole_request(
    controller: ControllerUnderTest,
) -> None:
    answers = alter(
        controller,
        Resource(TOPIC, "t", [Alter("retention.ms", 9, "5")]),
        Resource(BROKER, "1", [Alter("log.cleaner.threads", SET, "5")]),
    )
    problem = "There is no config operation 9."
    assert answers == [(TOPIC, "t", 42, problem), (BROKER, "1", 42, problem)]
    assert controller.written == []


def test_cordoned_directories(controller: ControllerUnderTest) -> None:
    def cordon(value: str, *, is_forwarded: bool) -> str | None:
        change = Resource(BROKER, "1", [Alter("cordoned.log.dirs", SET, value)])
        return alter(controller, change, is_forwarded=is_forwarded)[0][3]

    refusal = (
        "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the "
        "current configuration value."
    )
    assert cordon("/a,/b", is_forwarded=False) == refusal
    assert cordon("/a,/b", is_forwarded=True) is None
    assert cordon("/a", is_forwarded=False) is None
    assert cordon("/b", is_forwarded=False) == refusal
    assert cordon(" ", is_forwarded=False) is None


def test_cordoned_directories_need_their_level() -> None:
    controller = started_cluster(version=MetadataVersion.V4_2_IV1)
    change = Resource(BROKER, "1", [Alter("cordoned.log.dirs", SET, "/a")])
    problem = (
        "The cordoned.log.dirs configuration value cannot be set because it requires "
        "metadata.version >= 4.3-IV0"
    )
    assert alter(controller, change) == [(BROKER, "1", ErrorCode.INVALID_CONFIG, problem)]


@pytest.mark.parametrize(
    ("resource_type", "name", "topic_name"), [(TOPIC, "t", "t"), (BROKER, "", "")]
)
def test_a_new_minimum_in_sync_clears_the_elr(
    controller: ControllerUnderTest, resource_type: int, name: str, topic_name: str
) -> None:
    alter(controller, Resource(resource_type, name, [Alter("min.insync.replicas", SET, "2")]))
    assert controller.written == [
        ConfigRecord(resource_type, name, "min.insync.replicas", "2"),
        ClearElrRecord(topic_name=topic_name),
    ]


def test_a_minimum_in_sync_that_is_not_a_number_counts_for_nothing() -> None:
    """Controllers take any value of a broker, as Kafka's do."""
    controller = started_cluster()
    controller.create_topic("t", replicas=2)
    change = Resource(BROKER, "", [Alter("min.insync.replicas", SET, "soon")])
    assert alter(controller, change) == [(BROKER, "", 0, None)]
    rules = ClusterRules(controller.image, controller.settings)
    topic = controller.image.topics.by_name("t")
    assert topic is not None
    assert rules.min_insync_replicas(topic) == 1


def test_without_elr_brokers_may_have_their_own_minimum() -> None:
    controller = started_cluster(version=MetadataVersion.V4_0_IV3)
    change = Resource(BROKER, "1", [Alter("min.insync.replicas", SET, "2")])
    assert alter(controller, change) == [(BROKER, "1", 0, None)]
    assert controller.written == [ConfigRecord(BROKER, "1", "min.insync.replicas", "2")]


def test_the_old_request_replaces_everything(controller: ControllerUnderTest) -> None:
    assert replace_all(controller, TOPIC, "t", retention_ms="5", segment_bytes="2097152") == OK
    assert replace_all(controller, TOPIC, "t", retention_ms="5", cleanup_policy="compact") == OK
    assert controller.written == [
        ConfigRecord(TOPIC, "t", "cleanup.policy", "compact"),
        ConfigRecord(TOPIC, "t", "segment.bytes", None),
    ]
    assert dict(controller.image.configs.of_topic("t").items()) == {
        "retention.ms": "5",
        "cleanup.policy": "compact",
    }


def test_the_old_request_knows_no_loggers(controller: ControllerUnderTest) -> None:
    assert replace_all(controller, BROKER_LOGGER, "1", root="INFO") == [
        (BROKER_LOGGER, "1", ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER.")
    ]


def test_the_old_request_may_not_drop_the_clusters_minimum(controller: ControllerUnderTest) -> None:
    problem = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert replace_all(controller, BROKER, "", log_cleaner_threads="2") == [
        (BROKER, "", ErrorCode.INVALID_CONFIG, problem)
    ]
