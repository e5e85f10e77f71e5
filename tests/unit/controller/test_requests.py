"""The front door: every request has its handler and its refusal; and the small requests."""

from collections.abc import Generator
from typing import get_args, get_origin, get_type_hints

import pytest
from tests.support.controller_under_test import CLUSTER_ID, started_cluster

from kvorum.controller.api import ControllerResult
from kvorum.controller.requests import controller_api, controller_apis
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.request_error import RequestError
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS, request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.fetch import FetchRequest
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
        pytest.param(
            1,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of "
            "type BROKER",
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
