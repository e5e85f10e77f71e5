"""Configurations at a broker: described as real ones do; changes that are refused or passed on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.golden_data import read_json_lines

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.alter_configs import Screened, reassemble, screen
from kvorum.broker.views.describe_configs import describe_configs
from kvorum.metadata.acls_image import AclsImage
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import UNRESTRICTED, Access, AuthorizerRules, Principal
from kvorum.metadata.voters import TARGET_VOTERS
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.topic_record import TopicRecord

Described = DescribeConfigsRequest.DescribeConfigsResource
TOPIC_LIKE = {1: ResourceType.TOPIC, 7: ResourceType.CLIENT_METRICS, 8: ResourceType.GROUP}
# The captured requests name at most a few keys, or none and mean all.
KEYS_ASKED_FOR_MAX = 5
DYNAMIC_BROKER, DYNAMIC_CLUSTER, STATIC, DEFAULT = 2, 3, 4, 5
Alter = IncrementalAlterConfigsRequest.AlterableConfig
Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
VIEW = BrokerView(node_id=1, cluster_id="c", listener="PLAIN", access=UNRESTRICTED)
INVALID = ErrorCode.INVALID_REQUEST
MANY_DIGITS = "9" * 5000
"""A number of more digits than Python reads."""
INTERVAL = "group.consumer.assignment.interval.ms"
OUT_OF_BOUNDS = (
    f"{INTERVAL} must be less than or equal to group.consumer.max.assignment.interval.ms"
)
UNFIT = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration Invalid "
    "dynamic configuration"
)
TOO_MANY_FETCHERS = UNFIT.format(
    "Dynamic thread count update validation failed for num.replica.fetchers=3, value should not be "
    "greater than double the current value 1"
)
TOO_FEW_THREADS = UNFIT.format(
    "Dynamic thread count update validation failed for num.io.threads=3, value should be at least "
    "half the current value 8"
)


def view(texts: Mapping[str, str] | None = None) -> BrokerView:
    return BrokerView(
        node_id=1, cluster_id="c", listener="PLAIN", access=UNRESTRICTED, texts=texts or {}
    )


def image_with(*records: ConfigRecord | TopicRecord) -> MetadataImage:
    return MetadataImage().apply_all((record, 0, offset) for offset, record in enumerate(records))


def described(
    image: MetadataImage, resource: Described, view_: BrokerView
) -> DescribeConfigsResponse.DescribeConfigsResult:
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    response = describe_configs(image, request, view_)
    assert len(response.encode(DescribeConfigsResponse.MAX_VERSION)) > 0
    (result,) = response.results
    return result


BROUGHT_BY_4_4 = {
    "consumer.assignor.offload.enable",
    "errors.deadletterqueue.copy.record.enable",
    "errors.deadletterqueue.group.enable",
    "errors.deadletterqueue.topic.name",
    "max.decompressed.message.bytes",
    "remote.copy.lag.bytes",
    "remote.copy.lag.ms",
    "share.assignor.offload.enable",
    "streams.acceptable.recovery.lag",
    "streams.assignor.name",
    "streams.assignor.offload.enable",
    "streams.num.warmup.replicas",
    "streams.rack.aware.assignment.tags",
    "streams.task.offset.interval.ms",
}


def golden_results(golden: Path) -> Iterator[dict[str, Any]]:
    """Results of 4.3.1 brokers with synonyms, for topics, groups and subscriptions."""
    for name in ("dynamic-4.3.1", "ladder-4.3.1"):
        for frame in read_json_lines(golden / "frames" / f"{name}.jsonl.gz"):
            is_response = frame["api_name"] == "DescribeConfigs" and (
                frame["direction"] == "response"
            )
            if not is_response or frame["api_version"] < 3:
                continue
            for result in frame["json"]["results"]:
                has_synonyms = any(config["synonyms"] for config in result["configs"])
                if result["resourceType"] in TOPIC_LIKE.values() and has_synonyms:
                    yield result


def layer(result: dict[str, Any], *sources: int) -> dict[str, str]:
    return {
        synonym["name"]: synonym["value"]
        for config in result["configs"]
        for synonym in config["synonyms"]
        if synonym["source"] in sources
    }


def test_against_real_brokers(golden: Path) -> None:
    seen = 0
    for result in golden_results(golden):
        kind, name = result["resourceType"], result["resourceName"]
        records: list[ConfigRecord | TopicRecord] = [
            ConfigRecord(of_kind, of_name, key, value)
            for of_kind, of_name, sources in (
                (kind, name, TOPIC_LIKE),
                (4, "", [DYNAMIC_CLUSTER]),
                (4, "1", [DYNAMIC_BROKER]),
            )
            for key, value in layer(result, *sources).items()
        ]
        if kind == ResourceType.TOPIC:
            records.append(TopicRecord(name=name, topic_id=bytes([1] * 16)))
        static = view(layer(result, STATIC))
        ours = described(image_with(*records), Described(kind, name, None), static)
        found = [
            {
                "name": config.name,
                "value": config.value,
                "readOnly": config.read_only,
                "configSource": config.config_source,
                "isSensitive": config.is_sensitive,
                "configType": config.config_type,
                "synonyms": [
                    {"name": s.name, "value": s.value, "source": s.source} for s in config.synonyms
                ],
            }
            for config in ours.configs
        ]
        wanted_names = {config["name"] for config in result["configs"]}
        expected = [
            {key: value for key, value in config.items() if key != "documentation"}
            for config in sorted(result["configs"], key=lambda config: config["name"])
        ]
        assert [config for config in found if config["name"] in wanted_names] == expected
        if len(expected) > KEYS_ASKED_FOR_MAX:
            assert {str(config["name"]) for config in found} - wanted_names <= BROUGHT_BY_4_4
        seen += len(expected)
    assert seen > 100


def test_an_unknown_topic_has_a_code_and_no_message() -> None:
    result = described(MetadataImage(), Described(2, "no", None), view())
    assert (result.error_code, result.error_message, result.configs) == (3, "", [])


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "message"),
    [
        (
            2,
            "a b",
            17,
            (
                "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
                "alphanumerics, '.', '_' and '-'"
            ),
        ),
        (4, "one", 42, "Broker id must be an integer, but it is: one"),
        (4, MANY_DIGITS, 42, f"Broker id must be an integer, but it is: {MANY_DIGITS}"),
        (4, "2", 42, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (8, "", 42, "Broker id must not be empty"),
        (8, "2", 42, "Unexpected broker id, expected 1 but received 2"),
        (16, "", 42, "Client metrics subscription name must not be empty"),
        (32, "", 42, "Group name must not be empty"),
    ],
)
def test_refusals_are_kafkas(resource_type: int, name: str, code: int, message: str) -> None:
    result = described(MetadataImage(), Described(resource_type, name, None), view())
    assert (result.error_code, result.error_message) == (code, message)


def test_a_type_that_does_not_exist_refuses_everything() -> None:
    request = DescribeConfigsRequest(resources=[Described(4, "1", None), Described(3, "x", None)])
    response = describe_configs(MetadataImage(), request, view())
    assert [result.error_code for result in response.results] == [ErrorCode.INVALID_REQUEST] * 2


def test_only_the_wanted_keys() -> None:
    image = image_with(TopicRecord(name="t", topic_id=bytes([1] * 16)))
    result = described(image, Described(2, "t", ["retention.ms", "no"]), view())
    assert [config.name for config in result.configs] == ["retention.ms"]


def test_this_broker() -> None:
    image = image_with(
        ConfigRecord(4, "", "log.retention.ms", "7200000"),
        ConfigRecord(4, "1", "log.cleaner.threads", "2"),
    )
    texts = {"node.id": "1", "ssl.key.password": "?", "my.own": "x", "log.retention.hours": "3"}
    result = described(image, Described(4, "1", None), view(texts))
    by_name = {config.name: config for config in result.configs}
    retention = by_name["log.retention.ms"]
    assert (retention.value, retention.config_source, retention.read_only) == ("7200000", 3, False)
    assert [(s.name, s.value, s.source) for s in retention.synonyms] == [
        ("log.retention.ms", "7200000", 3),
        ("log.retention.hours", "3", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert (by_name["log.cleaner.threads"].value, by_name["node.id"].read_only) == ("2", True)
    secret = by_name["ssl.key.password"]
    assert (secret.value, secret.is_sensitive) == (None, True)
    own = by_name["my.own"]
    assert (own.value, own.is_sensitive, own.config_type, own.config_source) == (None, True, 0, 4)


def test_all_brokers_together() -> None:
    image = image_with(ConfigRecord(4, "", "log.retention.ms", "7200000"))
    (config,) = described(image, Described(4, "", None), view({"log.retention.ms": "1"})).configs
    assert (config.name, config.value, config.config_source) == ("log.retention.ms", "7200000", 3)
    assert [(s.value, s.source) for s in config.synonyms] == [("7200000", 3)]


def test_the_target_voters_are_no_secret() -> None:
    image = image_with(ConfigRecord(4, "", TARGET_VOTERS, "4,5,6"), ConfigRecord(4, "", "x", "y"))
    for name in ("", "1"):
        result = described(image, Described(4, name, None), view({"node.id": "1"}))
        found = {config.name: config for config in result.configs}
        config = found[TARGET_VOTERS]
        assert (config.value, config.is_sensitive, config.read_only) == ("4,5,6", False, False)
        assert found["x"].is_sensitive


def dynamic(name: str, value: str, broker: str = "") -> ConfigRecord:
    return ConfigRecord(ResourceType.BROKER, broker, name, value)


def test_a_node_does_not_take_every_dynamic_value_that_is_in_the_log() -> None:
    image = image_with(
        dynamic("num.io.threads", " 7"),
        dynamic("num.network.threads", "many"),
        dynamic("node.id", "9"),
        dynamic("listeners", "PLAINTEXT://:1"),
        dynamic("what.ever", "x"),
        dynamic("listener.name.a.max.connections", "5"),
        dynamic("listener.name.a.num.io.threads", "5"),
        dynamic("ssl.keystore.type", "PEM", broker="1"),
        dynamic("listener.name.a.ssl.keystore.type", "PEM", broker="1"),
        dynamic("log.retention.ms", "-5x", broker="1"),
    )
    # The text of a value for all brokers is shown as it was written.
    shown = described(image, broker(""), view()).configs
    assert {entry.name: (entry.value, entry.read_only) for entry in shown} == {
        "num.io.threads": (" 7", False),
        "what.ever": (None, True),
        "listener.name.a.max.connections": ("5", True),
    }
    own = described(image, broker("1"), view()).configs
    assert [entry.name for entry in own if entry.config_source == DYNAMIC_BROKER] == [
        "listener.name.a.ssl.keystore.type"
    ]


@pytest.mark.parametrize(("written", "applied"), [("20000", "15000"), ("7", "50"), ("60", "60")])
def test_an_interval_out_of_its_bounds_is_brought_within_them(written: str, applied: str) -> None:
    """The text is shown where it was written; the broker and its groups have what is applied."""
    image = image_with(dynamic("group.share.assignment.interval.ms", written))
    texts = view({"group.share.min.assignment.interval.ms": "50"})

    def shown(kind: ResourceType, name: str, key: str) -> list[str | None]:
        return [
            entry.value for entry in described(image, Described(kind, name, [key]), texts).configs
        ]

    assert shown(ResourceType.BROKER, "", "group.share.assignment.interval.ms") == [written]
    assert shown(ResourceType.BROKER, "1", "group.share.assignment.interval.ms") == [applied]
    assert shown(ResourceType.GROUP, "g", "share.assignment.interval.ms") == [applied]


def test_defaults_that_a_topic_cannot_have_are_an_error_without_a_text() -> None:
    image = image_with(
        TopicRecord(name="t", topic_id=bytes(15) + b"\1"), dynamic("log.flush.interval.ms", "-7")
    )
    result = described(image, Described(ResourceType.TOPIC, "t"), view())
    assert (result.error_code, result.error_message, result.configs) == (-1, None, [])


def broker(name: str) -> Described:
    return Described(ResourceType.BROKER, name)


def screened(
    *resources: Resource, image: MetadataImage | None = None
) -> Screened[IncrementalAlterConfigsRequest]:
    request = IncrementalAlterConfigsRequest(resources=list(resources))
    return screen(image or MetadataImage(), request, VIEW)


REFUSALS = [
    (INVALID, Resource(99, "x", []), "Unknown resource type 99"),
    (
        INVALID,
        Resource(TOPIC, "t", [Alter("a", SET, "1"), Alter("a", SET, "2")]),
        "Error due to duplicate config keys",
    ),
    (
        INVALID,
        Resource(TOPIC, "t", [Alter("a", SET, None), Alter("b", APPEND, None)]),
        "Null value not supported for : a, b",
    ),
    (INVALID, Resource(BROKER_LOGGER, "x", []), "Node id must be an integer, but it is: x"),
    (INVALID, Resource(BROKER_LOGGER, "2", []), "Unexpected node id. Expected 1, but received 2"),
    (
        ErrorCode.INVALID_CONFIG,
        Resource(BROKER_LOGGER, "1", [Alter("root", SET, "INFO")]),
        "Logger root does not exist!",
    ),
    (
        INVALID,
        Resource(BROKER_LOGGER, "1", [Alter("root", APPEND, "INFO")]),
        "APPEND operation is not allowed for the BROKER_LOGGER resource",
    ),
    (
        INVALID,
        Resource(BROKER_LOGGER, "1", [Alter("root", 7, "INFO")]),
        "Unknown operation type 7 is not allowed for the BROKER_LOGGER resource",
    ),
    (INVALID, Resource(BROKER, "x", []), "Node id must be an integer, but it is: x"),
    (
        INVALID,
        Resource(BROKER, MANY_DIGITS, []),
        f"Node id must be an integer, but it is: {MANY_DIGITS}",
    ),
    (INVALID, Resource(BROKER, "2", []), "Unexpected broker id, expected 1, but received 2"),
    (
        INVALID,
        Resource(BROKER, "1", [Alter("node.id", SET, "2"), Alter("log.dirs", SET, "/a")]),
        "Cannot update these configs dynamically: [log.dirs, node.id]",
    ),
    (
        INVALID,
        Resource(BROKER, "1", [Alter("ssl.keystore.location", SET, "/a")]),
        (
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix: [ssl.keystore.location]"
        ),
    ),
    (
        INVALID,
        Resource(BROKER, "1", [Alter("log.retention.ms", SET, "soon")]),
        "Invalid value soon for configuration log.retention.ms: Not a number of type LONG",
    ),
    (
        INVALID,
        Resource(BROKER, "", [Alter("cordoned.log.dirs", SET, "/a")]),
        (
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[cordoned.log.dirs]"
        ),
    ),
    (INVALID, Resource(BROKER, "1", [Alter(INTERVAL, SET, "15001")]), OUT_OF_BOUNDS),
    (INVALID, Resource(BROKER, "", [Alter(INTERVAL, SET, "15001")]), OUT_OF_BOUNDS),
    (INVALID, Resource(BROKER, "1", [Alter("num.replica.fetchers", SET, "3")]), TOO_MANY_FETCHERS),
    (INVALID, Resource(BROKER, "", [Alter("num.replica.fetchers", SET, "3")]), TOO_MANY_FETCHERS),
    (INVALID, Resource(BROKER, "", [Alter("num.io.threads", SET, "3")]), TOO_FEW_THREADS),
    (
        INVALID,
        Resource(BROKER, "1", [Alter("log.cleaner.threads", SET, "3")]),
        UNFIT.format(
            "Log cleaner threads cannot be increased to more than double the current value 1"
        ),
    ),
    (
        INVALID,
        Resource(BROKER, "", [Alter("log.cleaner.threads", SET, "0")]),
        UNFIT.format("Log cleaner threads should be at least 1"),
    ),
    (
        INVALID,
        Resource(BROKER, "", [Alter("log.cleaner.dedupe.buffer.size", SET, "1048576")]),
        (
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner "
            "thread."
        ),
    ),
    (INVALID, Resource(BROKER, "1", [Alter("a", 9, "1")]), "Unknown operations type 9"),
    (
        ErrorCode.INVALID_CONFIG,
        Resource(BROKER, "1", [Alter("log.retention.ms", APPEND, "1")]),
        "Config value append is not allowed for config key: log.retention.ms",
    ),
    (
        ErrorCode.INVALID_CONFIG,
        Resource(BROKER, "1", [Alter("no.such", SUBTRACT, "1")]),
        "Unknown config name: no.such",
    ),
]


@pytest.mark.parametrize(("code", "resource", "message"), REFUSALS)
def test_what_a_broker_refuses(code: ErrorCode, resource: Resource, message: str) -> None:
    found = screened(resource)
    refusal = found.answers[0]
    assert refusal is not None
    assert (refusal.code, refusal.message) == (code, message)
    assert found.remaining.resources == []


@pytest.mark.parametrize("resource", [Resource(BROKER, "2", []), Resource(BROKER_LOGGER, "2", [])])
def test_a_broker_refuses_changes_before_it_tells_whose_they_are(resource: Resource) -> None:
    nothing_allowed = Access(AuthorizerRules(), AclsImage(), Principal("User", "alice"), "host")
    request = IncrementalAlterConfigsRequest(resources=[resource])
    found = screen(MetadataImage(), request, replace(VIEW, access=nothing_allowed))
    refusal = found.answers[0]
    assert refusal is not None
    assert (refusal.code, refusal.message) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)


def test_a_broker_without_loggers_to_change() -> None:
    nothing = Resource(BROKER_LOGGER, "1", [])
    found = screened(nothing)
    assert found.remaining.resources == []
    request = IncrementalAlterConfigsRequest(resources=[nothing])
    whole = reassemble(request, found.answers, IncrementalAlterConfigsResponse())
    assert [(r.error_code, r.error_message) for r in whole.responses] == [(0, None)]


def test_what_a_broker_passes_on() -> None:
    resources = [
        Resource(TOPIC, "t", [Alter("no.such.key", SET, "1")]),
        Resource(BROKER, "", [Alter("log.retention.ms", SET, "1")]),
        Resource(BROKER, "1", [Alter("cordoned.log.dirs", SET, "*"), Alter("mine", DELETE, None)]),
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=True)
    found = screen(MetadataImage(), request, VIEW)
    assert not found.answers
    assert found.remaining == request


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        (Alter("num.replica.fetchers", SET, "4"), False),
        (Alter("num.replica.fetchers", SET, "16"), False),
        (Alter("num.replica.fetchers", SET, "17"), True),
        (Alter("num.replica.fetchers", DELETE, None), True),
        (Alter("log.retention.ms", SET, "1"), False),
    ],
)
def test_threads_become_at_most_twice_as_many_or_half_as_many_as_are_in_force(
    change: IncrementalAlterConfigsRequest.AlterableConfig, *, is_refused: bool
) -> None:
    """The value of this broker counts before the one of its properties, which counts without it."""
    image = image_with(dynamic("num.replica.fetchers", "8", broker="1"))
    request = IncrementalAlterConfigsRequest(resources=[Resource(BROKER, "1", [change])])
    found = screen(image, request, view({"num.replica.fetchers": "3"}))
    assert bool(found.answers) is is_refused


def test_the_threads_of_a_cleaner_are_judged_by_those_in_force() -> None:
    image = image_with(dynamic("log.cleaner.threads", "8"))
    for count, is_refused in (("3", True), ("4", False), ("16", False), ("17", True)):
        change = Resource(BROKER, "", [Alter("log.cleaner.threads", SET, count)])
        assert bool(screened(change, image=image).answers) is is_refused
        request = IncrementalAlterConfigsRequest(resources=[change])
        assert not screen(image, request, view({"log.cleaner.enable": "false"})).answers


def test_a_value_for_all_brokers_is_not_judged_where_this_broker_has_its_own() -> None:
    image = image_with(dynamic("num.replica.fetchers", "8", broker="1"))
    assert not screened(
        Resource(BROKER, "", [Alter("num.replica.fetchers", SET, "99")]), image=image
    ).answers


def test_lists_are_judged_with_what_they_are_added_to() -> None:
    image = MetadataImage().apply(ConfigRecord(BROKER, "1", "log.cleanup.policy", "delete"), 0, 0)

    def message(operation: int, value: str) -> str | None:
        change = Resource(BROKER, "1", [Alter("log.cleanup.policy", operation, value)])
        refusal = screened(change, image=image).answers.get(0)
        return refusal.message if refusal else None

    assert message(APPEND, "compact") is None
    assert message(SUBTRACT, "compact") is None
    refusal = message(APPEND, "shred")
    assert refusal is not None
    assert "shred" in refusal


@pytest.mark.parametrize(("changed", "other"), [("", "1"), ("1", "")])
def test_an_interval_out_of_its_bounds_prevents_other_changes(changed: str, other: str) -> None:
    """As in Kafka, which checks all dynamic values of a broker together; it is to be removed."""
    image = image_with(dynamic(INTERVAL, "15001", broker=other))
    refusal = screened(Resource(BROKER, changed, []), image=image).answers[0]
    assert refusal is not None
    assert refusal.message == OUT_OF_BOUNDS
    removal = Resource(BROKER, other, [Alter(INTERVAL, DELETE, None)])
    assert not screened(removal, image=image).answers


def test_the_bounds_of_an_interval_are_those_of_the_file() -> None:
    request = IncrementalAlterConfigsRequest(
        resources=[Resource(BROKER, "", [Alter(INTERVAL, SET, "15001")])]
    )
    texts = {"group.consumer.max.assignment.interval.ms": "20000"}
    assert not screen(MetadataImage(), request, view(texts)).answers


def test_a_value_that_no_broker_applies_prevents_no_other_change() -> None:
    """Controllers write any value of a broker to the log, as Kafka's do."""
    image = MetadataImage()
    for broker, name, value in (
        ("1", "node.id", "4"),
        ("1", "log.retention.ms", "soon"),
        ("1", "ssl.keystore.location", "/a"),
        ("", "cordoned.log.dirs", "/a"),
    ):
        image = image.apply(ConfigRecord(BROKER, broker, name, value), 0, 0)
    throttle = Alter("leader.replication.throttled.rate", DELETE, None)
    for resource in [
        Resource(BROKER, "1", [throttle]),
        Resource(BROKER, "1", [Alter("node.id", DELETE, None)]),
        Resource(BROKER, "", [Alter("log.retention.ms", SET, "1")]),
    ]:
        assert not screened(resource, image=image).answers


def test_answers_come_in_the_order_of_the_request() -> None:
    topic = Resource(TOPIC, "t", [Alter("a", SET, "1")])
    twice = Resource(BROKER, "1", [])
    lost = Resource(TOPIC, "lost", [Alter("a", SET, "1")])
    request = IncrementalAlterConfigsRequest(resources=[twice, topic, twice, lost])
    found = screen(MetadataImage(), request, VIEW)
    assert found.remaining.resources == [topic, lost]
    response = IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(3, "no topic", TOPIC, "t")
        ]
    )
    again = "Each resource must appear at most once."
    whole = reassemble(request, found.answers, response)
    assert [(r.error_code, r.error_message, r.resource_name) for r in whole.responses] == [
        (42, again, "1"),
        (3, "no topic", "t"),
        (42, again, "1"),
        (-1, ErrorCode.UNKNOWN_SERVER_ERROR.default_message, "lost"),
    ]


def test_the_old_request() -> None:
    def resource(
        resource_type: int, name: str, value: str | None
    ) -> AlterConfigsRequest.AlterConfigsResource:
        return AlterConfigsRequest.AlterConfigsResource(
            resource_type, name, [AlterConfigsRequest.AlterableConfig("log.retention.ms", value)]
        )

    request = AlterConfigsRequest(
        resources=[
            resource(BROKER, "1", "soon"),
            resource(BROKER_LOGGER, "1", "INFO"),
            resource(TOPIC, "t", None),
            resource(BROKER, "", "5"),
        ]
    )
    found = screen(MetadataImage(), request, VIEW)
    assert {index: error and error.message for index, error in found.answers.items()} == {
        0: "Invalid value soon for configuration log.retention.ms: Not a number of type LONG",
        1: "Unknown resource type 8",
        2: "Null value not supported for : log.retention.ms",
    }
    assert found.remaining.resources == [request.resources[3]]
    answer = AlterConfigsResponse.AlterConfigsResourceResponse(0, None, BROKER, "")
    whole = reassemble(request, found.answers, AlterConfigsResponse(responses=[answer]))
    assert [r.error_code for r in whole.responses] == [42, 42, 42, 0]


def test_the_old_request_replaces_a_value_that_prevents_others() -> None:
    image = image_with(dynamic(INTERVAL, "15001", broker="1"))
    replacing = AlterConfigsRequest.AlterConfigsResource(BROKER, "1", [])
    assert not screen(image, AlterConfigsRequest(resources=[replacing]), VIEW).answers
