"""A broker refuses changes of configurations, and puts the answers together again."""

from random import Random

import pytest

from kvorum.broker.view_api import BrokerView
from kvorum.broker.views.alter_configs import Screened, reassemble, screen
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Alter = IncrementalAlterConfigsRequest.AlterableConfig
Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
VIEW = BrokerView(node_id=1, cluster_id="c", listener="PLAIN", random=Random(1))


INVALID = ErrorCode.INVALID_REQUEST


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
    (INVALID, Resource(BROKER, "2", []), "Unexpected broker id, expected 1, but received 2"),
    (
        INVALID,
        Resource(BROKER, "1", [Alter("node.id", SET, "2"), Alter("log.dirs", SET, "/a")]),
        "Cannot update these configs dynamically: [log.dirs, node.id]",
    ),
    pytest.param(
        INVALID,
        Resource(BROKER, "1", [Alter("ssl.keystore.location", SET, "/a")]),
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: [ssl.keystore.location]",
    ),
    (
        INVALID,
        Resource(BROKER, "1", [Alter("log.retention.ms", SET, "soon")]),
        "Invalid value soon for configuration log.retention.ms: Not a number of type LONG",
    ),
    pytest.param(
        INVALID,
        Resource(BROKER, "", [Alter("cordoned.log.dirs", SET, "/a")]),
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[cordoned.log.dirs]",
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
        Resource(BROKER, "1", [Alter("cordoned.log.dirs", SET, "/a"), Alter("mine", DELETE, None)]),
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=True)
    found = screen(MetadataImage(), request, VIEW)
    assert not found.answers
    assert found.remaining == request


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
