"""The answers of a broker to a client with few permissions, and what they hide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.request_error import RequestError
from kvorum.node.raft.translation.fetch import refuse_fetch
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kvorum.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kvorum.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kvorum.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kvorum.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NAMES = ["secret", "open"]
EVERY_OPERATION = 3576
NOT_TOLD = -(2**31)
BARRED_HOST = "127.0.0.9"
"""A machine from which nobody may act as a broker."""


def entry(
    resource_type: AclResourceType, name: str, operation: AclOperation, user: str
) -> CreateAclsRequest.AclCreation:
    """Return an entry that allows a user something."""
    return CreateAclsRequest.AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=PermissionType.ALLOW,
    )


class Closing(NamedTuple):
    """The node, and the id of the topic that nobody may name."""

    cluster: Cluster
    secret_id: bytes


@pytest.fixture(scope="module")
def closing() -> Iterator[Closing]:
    """A node that lets everyone do what no entry is about; then there are some.

    Clients may pass on requests, as brokers have to, and that is all on the cluster. The topic
    "secret" and its group are somebody else's.
    """
    overrides = {
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": " True ",
        "super.users": "User:root; User:admin",
    }
    with Cluster(overrides=overrides) as cluster:
        with RawClient(cluster.controller_servers) as controller:
            topics = [
                CreateTopicsRequest.CreatableTopic(name=n, num_partitions=1, replication_factor=1)
                for n in NAMES
            ]
            created = controller.ask(
                CreateTopicsRequest(topics=topics, timeout_ms=9_999), CreateTopicsResponse, 7
            )
            assert [topic.error_code for topic in created.topics] == [0, 0]
            cluster_name = "kafka-cluster"
            entries = [
                entry(AclResourceType.TOPIC, "secret", AclOperation.READ, "bob"),
                entry(AclResourceType.TOPIC, "new-secret", AclOperation.CREATE, "bob"),
                entry(AclResourceType.TOPIC, "new-secret", AclOperation.DESCRIBE, "ANONYMOUS"),
                entry(AclResourceType.GROUP, "secret", AclOperation.READ, "bob"),
                entry(
                    AclResourceType.CLUSTER, cluster_name, AclOperation.CLUSTER_ACTION, "ANONYMOUS"
                ),
            ]
            barred = entry(
                AclResourceType.CLUSTER, cluster_name, AclOperation.CLUSTER_ACTION, "ANONYMOUS"
            )
            barred.host, barred.permission_type = BARRED_HOST, PermissionType.DENY
            entries.append(barred)
            answer = controller.ask(CreateAclsRequest(creations=entries), CreateAclsResponse, 3)
            assert [result.error_code for result in answer.results] == [0] * len(entries)
        yield Closing(cluster, created.topics[0].topic_id)


@pytest.fixture
def client(closing: Closing) -> Iterator[RawClient]:
    """A connection to the broker of that node."""
    with RawClient(closing.cluster.bootstrap_servers) as connection:
        yield connection


def test_metadata_hides_topics_that_a_client_may_not_describe(client: RawClient) -> None:
    every = client.ask(MetadataRequest(topics=None), MetadataResponse, 12)
    assert {"open", "secret"} & {topic.name for topic in every.topics} == {"open"}
    asked = [MetadataRequestTopic(name=name) for name in (*NAMES, "new-secret", "new")]
    request = MetadataRequest(
        topics=asked, allow_auto_topic_creation=True, include_topic_authorized_operations=True
    )
    response = client.ask(request, MetadataResponse, 12)
    found = {t.name: (t.error_code, t.topic_authorized_operations) for t in response.topics}
    assert found == {
        "open": (0, EVERY_OPERATION),
        "secret": (29, NOT_TOLD),
        "new-secret": (29, NOT_TOLD),
        "new": (3, EVERY_OPERATION),
    }


def test_a_topic_asked_for_by_its_id_is_not_named(client: RawClient, closing: Closing) -> None:
    asked = MetadataRequestTopic(name=None, topic_id=closing.secret_id)
    (topic,) = client.ask(MetadataRequest(topics=[asked]), MetadataResponse, 12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (29, None, closing.secret_id)


def test_operations_on_the_cluster_are_those_allowed(client: RawClient) -> None:
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    assert client.ask(request, MetadataResponse, 10).cluster_authorized_operations == 0
    described = client.ask(
        DescribeClusterRequest(include_cluster_authorized_operations=True),
        DescribeClusterResponse,
        2,
    )
    assert described.error_code == 0
    assert described.cluster_authorized_operations == 0


def test_partitions_are_described_of_topics_that_may_be(client: RawClient) -> None:
    asked = [DescribeTopicPartitionsRequest.TopicRequest(name) for name in NAMES]
    response = client.ask(
        DescribeTopicPartitionsRequest(topics=asked), DescribeTopicPartitionsResponse, 0
    )
    assert {t.name: (t.error_code, len(t.partitions)) for t in response.topics} == {
        "open": (0, 1),
        "secret": (29, 0),
    }
    every = client.ask(DescribeTopicPartitionsRequest(), DescribeTopicPartitionsResponse, 0)
    assert {"open", "secret"} & {topic.name for topic in every.topics} == {"open"}


def test_configurations_are_described_resource_by_resource(client: RawClient) -> None:
    resources = [(2, "secret"), (2, "open"), (4, ""), (8, "0"), (16, "m"), (32, "secret")]
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=None
            )
            for resource_type, name in resources
        ]
    )
    response = client.ask(request, DescribeConfigsResponse, 4)
    assert [(r.resource_type, r.resource_name, r.error_code) for r in response.results] == [
        (2, "open", 0),
        (2, "secret", 29),
        (4, "", 31),
        (8, "0", 31),
        (16, "m", 31),
        (32, "secret", 30),
    ]
    refusal = response.results[1]
    assert refusal.error_message == ErrorCode.TOPIC_AUTHORIZATION_FAILED.default_message


def test_what_needs_a_permission_on_the_cluster_is_refused_as_a_whole(client: RawClient) -> None:
    quotas = client.ask(DescribeClientQuotasRequest(), DescribeClientQuotasResponse, 1)
    assert (quotas.error_code, quotas.error_message, quotas.entries) == (31, None, None)
    users = [DescribeUserScramCredentialsRequest.UserName("somebody")]
    scram = client.ask(
        DescribeUserScramCredentialsRequest(users=users), DescribeUserScramCredentialsResponse, 0
    )
    assert (scram.error_code, scram.error_message) == (31, None)
    assert [(r.user, r.error_code) for r in scram.results] == [("", 31)]
    acls = client.ask(
        DescribeAclsRequest(
            resource_type_filter=AclResourceType.ANY,
            pattern_type_filter=PatternType.ANY,
            operation=AclOperation.ANY,
            permission_type=PermissionType.ANY,
        ),
        DescribeAclsResponse,
        3,
    )
    assert acls.error_code == 31
    assert (acls.error_message or "").endswith(" needs DESCRIBE permission.")
    directories = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    assert (directories.error_code, directories.results) == (31, [])
    resources = client.ask(ListConfigResourcesRequest(), ListConfigResourcesResponse, 1)
    assert (resources.error_code, resources.config_resources) == (31, [])


def test_requests_about_records_tell_a_missing_permission_first(
    client: RawClient, closing: Closing
) -> None:
    asked = [
        ListOffsetsRequest.ListOffsetsTopic(
            name=name, partitions=[ListOffsetsRequest.ListOffsetsPartition(0, -1, -1)]
        )
        for name in NAMES
    ]

    def codes() -> dict[str, int] | None:
        offsets = client.ask(ListOffsetsRequest(topics=asked), ListOffsetsResponse, 7)
        found = {topic.name: topic.partitions[0].error_code for topic in offsets.topics}
        # A broker knows of a partition before it has made its log.
        return None if found["open"] == ErrorCode.NOT_LEADER_OR_FOLLOWER else found

    assert wait_for(codes, "it is hosted") == {"open": 0, "secret": 29}
    topic = FetchRequest.FetchTopic(
        topic_id=closing.secret_id, partitions=[FetchRequest.FetchPartition(partition=0)]
    )
    fetched = client.ask(FetchRequest(topics=[topic]), FetchResponse, 13)
    assert fetched.responses[0].partitions[0].error_code == 29


def test_coordinators_are_told_to_who_may_know_of_the_group(client: RawClient) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["secret", "open"])
    response = client.ask(request, FindCoordinatorResponse, 4)
    assert {c.key: c.error_code for c in response.coordinators} == {
        "secret": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "open": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }


def test_refused_fetches_name_partitions_in_old_versions() -> None:
    request = FetchRequest(
        session_id=5,
        topics=[
            FetchRequest.FetchTopic(
                topic="t", partitions=[FetchRequest.FetchPartition(partition=3)]
            )
        ],
    )
    error = RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    old, new = (refuse_fetch(request, error, version) for version in (12, 13))
    assert (old.error_code, old.session_id) == (new.error_code, new.session_id) == (31, 5)
    assert [
        (t.topic, p.partition_index, p.error_code) for t in old.responses for p in t.partitions
    ] == [("t", 3, 31)]
    assert new.responses == []
    old.encode(12)


def test_a_follower_needs_a_permission_on_the_cluster_and_none_on_the_topic(
    closing: Closing,
) -> None:
    wish = FetchRequest.FetchPartition(partition_max_bytes=1000)
    request = FetchRequest(replica_id=55, topics=[FetchRequest.FetchTopic("secret", b"", [wish])])
    request.topics[0].topic_id = closing.secret_id
    for host, expected in (
        # No replica of the partition is on a broker 55.
        ("", ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (BARRED_HOST, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ):
        with RawClient(closing.cluster.bootstrap_servers, source_host=host) as client:
            (answered,) = client.ask(request, FetchResponse, 12).responses
        assert answered.partitions[0].error_code == expected
