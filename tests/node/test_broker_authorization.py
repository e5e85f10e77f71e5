"""The answers of a broker to a client with few permissions, and what they hide.

What interop/test_access_tools.py compares with a real broker is not here again.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.support.acls import add_entries, entry
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import CLUSTER_NAME, AclOperation, AclResourceType, PermissionType
from kvorum.metadata.request_error import RequestError
from kvorum.node.raft.translation.fetch import refuse_fetch
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
BOB = "User:bob"
NAMES = ["secret", "open"]
EVERY_OPERATION = 3576
NOT_TOLD = -(2**31)
BARRED_HOST = "127.0.0.9"
"""A machine from which no client may act as a broker."""


class Closing(NamedTuple):
    """The node, and the id of the topic that no client may name."""

    cluster: Cluster
    secret_id: bytes


@pytest.fixture(scope="module")
def closing() -> Iterator[Closing]:
    """A node that lets everyone do what no entry is about; then there are some.

    Clients may pass on requests, as brokers have to, and that is all on the cluster. The topic
    "secret" is another user's.
    """
    overrides = {
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": " True ",
        "super.users": "User:root; User:admin",
    }
    with Cluster(overrides=overrides) as cluster:
        with RawClient(cluster.controller_servers) as controller:
            create_topic(controller, "open")
            secret_id = create_topic(controller, "secret")
            add_entries(
                controller,
                entry(AclResourceType.TOPIC, "secret", AclOperation.READ, principal=BOB),
                entry(AclResourceType.TOPIC, "new-secret", AclOperation.CREATE, principal=BOB),
                entry(AclResourceType.TOPIC, "new-secret", AclOperation.DESCRIBE),
                entry(AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION),
                entry(
                    AclResourceType.CLUSTER,
                    CLUSTER_NAME,
                    AclOperation.CLUSTER_ACTION,
                    host=BARRED_HOST,
                    permission=PermissionType.DENY,
                ),
            )
        yield Closing(cluster, secret_id)


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


def test_refused_fetches_name_partitions_in_old_versions() -> None:
    topic = FetchRequest.FetchTopic("t", partitions=[FetchRequest.FetchPartition(3)])
    request = FetchRequest(session_id=5, topics=[topic])
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
