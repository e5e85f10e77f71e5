"""Clients that may describe the cluster may read ``__cluster_metadata``."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.support.acls import add_entries, entry
from tests.support.metadata_consumer import fetch, fetch_request, list_offsets
from tests.support.raw_client import RawClient

from kvorum.metadata.acl_codes import CLUSTER_NAME, AclOperation, AclResourceType
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
SETTINGS = {
    "kvorum.metadata.topic.readable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:root",
}


class Sides(NamedTuple):
    """Clients of a broker and of a controller, both anonymous."""

    broker: RawClient
    controller: RawClient


def allow(client: RawClient, *permissions: tuple[AclResourceType, str, AclOperation]) -> None:
    """Add entries that let all clients here do something; brokers may go on."""
    cluster_action = (AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)
    add_entries(client, *(entry(*one) for one in (*permissions, cluster_action)))


@pytest.fixture
def sides() -> Iterator[Sides]:
    with (
        Cluster(overrides=SETTINGS) as cluster,
        RawClient(cluster.bootstrap_servers) as broker,
        RawClient(cluster.controller_servers) as controller,
    ):
        yield Sides(broker, controller)


def shown(broker: RawClient) -> list[tuple[str | None, int]]:
    """Return name and error of all topics, of the one by its name, and of the one by its id."""
    everything = MetadataRequest(topics=None)
    by_name = MetadataRequest(topics=[MetadataRequestTopic(name=CLUSTER_METADATA_TOPIC)])
    by_id = MetadataRequest(topics=[MetadataRequestTopic(METADATA_TOPIC_ID, None)])
    return [
        (topic.name, topic.error_code)
        for request in (everything, by_name, by_id)
        for topic in broker.ask(request, MetadataResponse, 12).topics
    ]


def described(broker: RawClient) -> int:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(CLUSTER_METADATA_TOPIC)],
        response_partition_limit=10,
    )
    (topic,) = broker.ask(request, DescribeTopicPartitionsResponse, 0).topics
    return topic.error_code


def test_a_permission_on_the_topic_does_not_count(sides: Sides) -> None:
    """Only an entry about the cluster counts."""
    allow(sides.controller, (AclResourceType.TOPIC, CLUSTER_METADATA_TOPIC, AclOperation.ALL))
    got = fetch(sides.broker, fetch_request(0))
    assert (got.error_code, got.high_watermark, got.records) == (REFUSED, -1, b"")
    (listed,) = list_offsets(sides.broker, -1)
    assert (listed.error_code, listed.offset) == (REFUSED, -1)
    assert shown(sides.broker) == [(CLUSTER_METADATA_TOPIC, REFUSED), (None, REFUSED)]
    assert described(sides.broker) == REFUSED


def test_describing_the_cluster_is_enough(sides: Sides) -> None:
    allow(
        sides.controller,
        (AclResourceType.TOPIC, CLUSTER_METADATA_TOPIC, AclOperation.WRITE),
        (AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE),
    )
    got = fetch(sides.broker, fetch_request(0))
    assert got.error_code == ErrorCode.NONE
    assert got.records
    (listed,) = list_offsets(sides.broker, -1)
    assert listed.offset == got.high_watermark
    assert shown(sides.broker) == [(CLUSTER_METADATA_TOPIC, 0)] * 3
    assert described(sides.broker) == ErrorCode.NONE
