"""Policies are asked, and their answers count."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

import pytest
from tests.support.controller_under_test import SETTINGS, ControllerUnderTest

from kvorum.controller.policies import AlterConfigRequest, CreateTopicRequest, PolicyViolationError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_configs import AlterConfigsRequest
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC = 2


Asked = TypeVar("Asked")


class Rule(Generic[Asked]):
    """Remembers what it was asked, and answers as set."""

    def __init__(self, act: Callable[[Asked], None] = lambda _: None) -> None:
        self.asked: list[Asked] = []
        self._act = act

    def validate(self, request: Asked, /) -> None:
        self.asked.append(request)
        self._act(request)


def cluster(
    topic_rule: Rule[CreateTopicRequest] | None = None,
    config_rule: Rule[AlterConfigRequest] | None = None,
) -> ControllerUnderTest:
    settings = replace(SETTINGS, create_topic_policy=topic_rule, alter_config_policy=config_rule)
    controller = ControllerUnderTest(replace(settings, partitions_default=3))
    controller.activate()
    controller.start_broker(1)
    return controller


def create(
    controller: ControllerUnderTest, *topics: CreateTopicsRequest.CreatableTopic
) -> list[tuple[int, str | None]]:
    response = controller.answer(CreateTopicsResponse, CreateTopicsRequest(topics=list(topics)))
    return [(topic.error_code, topic.error_message) for topic in response.topics]


def topic(name: str = "t", **configs: str) -> CreateTopicsRequest.CreatableTopic:
    wanted = [
        CreateTopicsRequest.CreatableTopicConfig(key.replace("_", "."), value)
        for key, value in configs.items()
    ]
    return CreateTopicsRequest.CreatableTopic(name, -1, -1, configs=wanted)


def set_config(
    controller: ControllerUnderTest, name: str, operations: dict[str, tuple[int, str | None]]
) -> tuple[int, str | None]:
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(key, operation, value)
        for key, (operation, value) in operations.items()
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(TOPIC, name, configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = controller.answer(IncrementalAlterConfigsResponse, request)
    return response.responses[0].error_code, response.responses[0].error_message


def test_a_policy_sees_the_topic_with_defaults_filled_in() -> None:
    rule = Rule[CreateTopicRequest]()
    assert create(cluster(rule), topic(retention_ms="5")) == [(0, None)]
    assert rule.asked == [
        CreateTopicRequest(
            topic="t", configs={"retention.ms": "5"}, num_partitions=3, replication_factor=1
        )
    ]


def test_a_policy_sees_assignments_instead_of_numbers() -> None:
    rule = Rule[CreateTopicRequest]()
    replicas = CreateTopicsRequest.CreatableReplicaAssignment(0, [1])
    assigned = CreateTopicsRequest.CreatableTopic("t", -1, -1, [replicas])
    assert create(cluster(rule), assigned) == [(0, None)]
    assert rule.asked == [CreateTopicRequest(topic="t", configs={}, replicas_assignments={0: [1]})]


def test_a_violation_refuses_one_topic_with_its_text_and_no_record() -> None:
    def short_names(request: CreateTopicRequest) -> None:
        if len(request.topic) > 1:
            raise PolicyViolationError(f"{request.topic} is too long")

    controller = cluster(Rule(short_names))
    assert create(controller, topic("long"), topic("s")) == [
        (ErrorCode.POLICY_VIOLATION, "long is too long"),
        (0, None),
    ]
    assert list(controller.image.topics.ids) == ["s"]


def test_a_topic_that_is_wrong_in_itself_is_not_asked_about() -> None:
    rule = Rule[CreateTopicRequest]()
    assert create(cluster(rule), topic(".."))[0][0] == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert rule.asked == []


@pytest.mark.parametrize("raised", [KeyError("secret"), RuntimeError()])
def test_a_policy_that_fails_is_an_unknown_error_without_a_text(raised: Exception) -> None:
    def fail(_: object) -> None:
        raise raised

    unknown = (int(ErrorCode.UNKNOWN_SERVER_ERROR), None)
    assert create(cluster(Rule(fail)), topic()) == [unknown]
    controller = cluster(config_rule=Rule(fail))
    controller.create_topic("t")
    assert set_config(controller, "t", {"retention.ms": (0, "5")}) == unknown


def test_a_policy_sees_the_changes_the_client_spells_out() -> None:
    rule = Rule[AlterConfigRequest]()
    controller = cluster(config_rule=rule)
    assert create(controller, topic(retention_ms="5", segment_bytes="2000000")) == [(0, None)]
    assert set_config(
        controller, "t", {"retention.ms": (1, None), "max.message.bytes": (0, "7")}
    ) == (0, None)
    flush = AlterConfigsRequest.AlterableConfig("flush.ms", "9")
    resource = AlterConfigsRequest.AlterConfigsResource(TOPIC, "t", [flush])
    controller.ask(AlterConfigsRequest(resources=[resource]))
    assert [(one.resource_type, one.resource_name, dict(one.configs)) for one in rule.asked] == [
        (TOPIC, "t", {"retention.ms": "5", "segment.bytes": "2000000"}),
        (TOPIC, "t", {"retention.ms": None, "max.message.bytes": "7"}),
        (TOPIC, "t", {"flush.ms": "9"}),
    ]


def test_a_violation_refuses_a_change_also_of_a_new_topic() -> None:
    def no_flush(request: AlterConfigRequest) -> None:
        if "flush.ms" in request.configs:
            raise PolicyViolationError("flush.ms is ours")

    refusal = (int(ErrorCode.POLICY_VIOLATION), "flush.ms is ours")
    controller = cluster(config_rule=Rule(no_flush))
    assert create(controller, topic("new", flush_ms="5"), topic("t")) == [refusal, (0, None)]
    assert set_config(controller, "t", {"flush.ms": (0, "5")}) == refusal
    assert set_config(controller, "t", {"retention.ms": (0, "5")}) == (0, None)
    assert dict(controller.image.configs.of(TOPIC, "t")) == {"retention.ms": "5"}
