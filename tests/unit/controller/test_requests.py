"""The front door: handlers, refusals, the policies that are asked, and the small requests."""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Generic, TypeVar, get_args, get_origin, get_type_hints

import pytest
from tests.support.controller_under_test import (
    CLUSTER_ID,
    SETTINGS,
    ControllerUnderTest,
    started_cluster,
)

from kvorum.controller.api import ControllerResult
from kvorum.controller.policies import AlterConfigRequest, CreateTopicRequest, PolicyViolationError
from kvorum.controller.requests import controller_api, controller_apis
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS, request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kvorum.wire.messages.alter_configs import AlterConfigsRequest
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord

TIMEOUT = "timeout_ms"
TIMED = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
}
"""Kafka's controller acts on the TimeoutMs of these alone."""
STRICT_SINCE = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
"""Which requests Kafka puts under the controller mutation quota, and when that became strict."""
EVERY_API = pytest.mark.parametrize("key", list(controller_apis()), ids=lambda key: key.name)
TOPIC = 2
Asked = TypeVar("Asked")


@EVERY_API
def test_each_api_decides_on_its_own_messages(key: ApiKey) -> None:
    api = controller_apis()[key]()
    assert "controller" in API_SPECS[key].listeners
    assert api.request is request_class(key)
    *given, returned = get_type_hints(api.decide).values()
    assert given == [MetadataImage, api.request, ControllerRequestContext]
    # Work in pieces is a generator, whose last parameter is what it returns.
    result = get_args(returned)[-1] if get_origin(returned) is Generator else returned
    assert (get_origin(result), *get_args(result)) == (ControllerResult, response_class(key))


@EVERY_API
@pytest.mark.parametrize("timeout_ms", [-(2**31), -1, 0, 1])
def test_no_time_is_too_little(key: ApiKey, timeout_ms: int) -> None:
    api = controller_apis()[key]()
    request = api.request()
    if hasattr(request, TIMEOUT):
        setattr(request, TIMEOUT, timeout_ms)
    if key not in TIMED or timeout_ms > 0:
        api.demand_time_left(request)
        return
    with pytest.raises(RequestError) as caught:
        api.demand_time_left(request)
    assert (caught.value.code, caught.value.message) == (ErrorCode.REQUEST_TIMED_OUT, None)


def test_the_mutation_quota_is_strict_since_the_versions_of_kip_599() -> None:
    found = {key: load().mutation_quota for key, load in controller_apis().items()}
    assert {key: terms.strict_since for key, terms in found.items() if terms} == STRICT_SINCE


def test_a_request_that_is_not_for_the_controller() -> None:
    controller = started_cluster(brokers=0)
    with pytest.raises(KeyError):
        controller.ask(FetchRequest())


def test_a_refusal_names_every_topic() -> None:
    request = CreateTopicsRequest(
        topics=[CreateTopicsRequest.CreatableTopic(name=name) for name in ("a", "b")]
    )
    response = controller_api(request).refuse(request, RequestError(ErrorCode.NOT_CONTROLLER), 7)
    assert isinstance(response, CreateTopicsResponse)
    found = [(topic.name, topic.error_code, topic.error_message) for topic in response.topics]
    assert found == [("a", 41, None), ("b", 41, None)]


def test_producer_ids_come_in_blocks() -> None:
    controller = started_cluster(brokers=1)
    epoch = controller.image.cluster.brokers[1].epoch
    for first in (0, 1000, 2000):
        assert controller.ask(AllocateProducerIdsRequest(1, epoch)) == AllocateProducerIdsResponse(
            producer_id_start=first, producer_id_len=1000
        )
        assert controller.last_records[0][0] == ProducerIdsRecord(1, epoch, first + 1000)


def test_producer_ids_are_for_brokers_of_this_epoch() -> None:
    controller = started_cluster(brokers=1)
    response = controller.ask(AllocateProducerIdsRequest(1, 999))
    assert response == AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    assert controller.last_records == ()


def test_the_controllers_of_the_cluster() -> None:
    controller = started_cluster(brokers=1)
    controller.register_controller(2)
    controller.register_controller(1)
    assert controller.ask(DescribeClusterRequest(endpoint_type=2)) == DescribeClusterResponse(
        cluster_id=CLUSTER_ID,
        controller_id=1,
        endpoint_type=2,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(1, "c1", 9093, None),
            DescribeClusterResponse.DescribeClusterBroker(2, "c2", 9093, None),
        ],
        cluster_authorized_operations=-(2**31),
    )


def test_a_leader_that_did_not_register_is_not_named() -> None:
    controller = started_cluster(brokers=1)
    controller.register_controller(2)
    response = controller.answer(
        DescribeClusterResponse,
        DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True),
    )
    assert response.controller_id == -1
    assert response.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            1,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            (
                "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint "
                "of type BROKER"
            ),
        ),
        (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 9"),
    ],
)
def test_a_wrong_endpoint_type(endpoint_type: int, code: ErrorCode, message: str) -> None:
    controller = started_cluster(brokers=1)
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    response = controller.answer(DescribeClusterResponse, request, api_version=1)
    assert (response.error_code, response.error_message) == (code, message)


def test_describing_controllers_needs_their_registration() -> None:
    controller = started_cluster(brokers=0, version=MetadataVersion.V3_6_IV2)
    response = controller.answer(DescribeClusterResponse, DescribeClusterRequest(endpoint_type=2))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


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
