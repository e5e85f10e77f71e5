"""Requests for metadata that are refused as a whole: every topic gets the error."""

from __future__ import annotations

import pytest

from kvorum.broker.views.refusals import refusal_of_view
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest
from kvorum.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
)
from kvorum.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopicRequest,
    DescribeTopicPartitionsResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

ERROR = RequestError(ErrorCode.INVALID_REQUEST, "why")


@pytest.mark.parametrize("api_version", range(MetadataResponse.MAX_VERSION + 1))
def test_metadata(api_version: int) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=None), MetadataRequestTopic(name="a")]
    )
    response = refusal_of_view(request, ERROR)
    assert isinstance(response, MetadataResponse)
    decoded = MetadataResponse.decode(response.encode(api_version), api_version)
    assert [(t.name, t.error_code) for t in decoded.topics] == [("", 42), ("a", 42)]


def test_partitions_of_topics() -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequestTopicRequest("a")]
    )
    response = refusal_of_view(request, ERROR)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    assert [(t.name, t.error_code) for t in response.topics] == [("a", 42)]


def test_configurations() -> None:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsRequestDescribeConfigsResource(2, "a", None)]
    )
    response = refusal_of_view(request, ERROR)
    assert isinstance(response, DescribeConfigsResponse)
    assert [(r.resource_name, r.error_code, r.error_message) for r in response.results] == [
        ("a", 42, ErrorCode.INVALID_REQUEST.default_message)
    ]


def test_whatever_has_a_place_for_the_error_of_the_whole() -> None:
    assert refusal_of_view(DescribeClusterRequest(), ERROR) is None
