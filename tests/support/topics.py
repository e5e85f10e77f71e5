"""The topics of a cluster and its access control entries, over a connection of one's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tests.support.raw_client import RawClient
from tests.support.record_requests import produce
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kvorum.wire.uuid_text import ZERO_UUID

CREATE_TIMEOUT_MS = 10_000
WITH_AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Settings of a node on which everybody may do what no entry is about."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The name and the id of a topic."""

    topic_id: bytes
    partition_count: int


def create_request(names: Sequence[str], *, partition_count: int = 1) -> CreateTopicsRequest:
    """Return a request for some topics."""
    topics = [CreateTopicsRequest.CreatableTopic(name, partition_count, 1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=CREATE_TIMEOUT_MS)


def create(address: str, *names: str, partition_count: int = 1) -> list[int]:
    """Create topics and return the error codes.

    A broker that a busy machine kept from its heartbeats is fenced for a moment, which is waited
    for: nothing is created meanwhile.
    """

    def ask() -> list[int] | None:
        codes = [topic.error_code for topic in client.ask(request, CreateTopicsResponse, 7).topics]
        return None if ErrorCode.INVALID_REPLICATION_FACTOR in codes else codes

    request = create_request(names, partition_count=partition_count)
    with RawClient(address) as client:
        return wait_for(ask, "a broker is there that is not fenced")


def create_topic(
    client: RawClient,
    name: str,
    partitions: int = 1,
    *,
    replicas: Sequence[int] = (),
    configs: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Create a topic of one replica for each partition, or of one partition; return its id."""
    topic = CreateTopicsRequest.CreatableTopic(
        name,
        num_partitions=-1 if replicas else partitions,
        replication_factor=-1 if replicas else 1,
        configs=[CreateTopicsRequest.CreatableTopicConfig(*one) for one in configs.items()],
    )
    if replicas:
        topic.assignments = [CreateTopicsRequest.CreatableReplicaAssignment(0, list(replicas))]
    request = CreateTopicsRequest([topic], CREATE_TIMEOUT_MS)
    (created,) = client.ask(request, CreateTopicsResponse, 7).topics
    assert created.error_code == ErrorCode.NONE, created
    return created.topic_id


def delete_topic(client: RawClient, name: str) -> None:
    """Delete a topic."""
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=CREATE_TIMEOUT_MS)
    (deleted,) = client.ask(request, DeleteTopicsResponse, 5).responses
    assert deleted.error_code == ErrorCode.NONE


def read_topics(address: str) -> dict[str, TopicFacts]:
    """Return all topics, each of them named once."""
    with RawClient(address) as client:
        response = client.ask(MetadataRequest(topics=None), MetadataResponse, 12)
    found: dict[str, TopicFacts] = {}
    for topic in response.topics:
        assert topic.error_code == ErrorCode.NONE
        assert topic.name is not None
        assert topic.name not in found
        indexes = sorted(partition.partition_index for partition in topic.partitions)
        assert indexes == list(range(len(indexes)))
        found[topic.name] = TopicFacts(topic.topic_id, len(indexes))
    return found


def wait_for_topics(address: str, *names: str) -> None:
    """Return once these are all the topics; a broker may be a little behind its controller."""
    wait_for(
        lambda: read_topics(address).keys() == set(names),
        f"these are all the topics: {names}",
        otherwise=lambda: sorted(read_topics(address)),
    )


def wait_until_served(address: str) -> None:
    """Return once a new client hears of a broker; one that is fenced is not named."""

    def is_told() -> bool:
        with RawClient(address) as client:
            return bool(client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers)

    wait_for(is_told, "a new client is told of a broker")


def wait_until_written(address: str, topic: str, data: bytes) -> None:
    """Write a batch to a new topic, which its broker may not lead yet."""

    def code() -> ErrorCode:
        return ErrorCode(produce(client, topic, data).error_code)

    with RawClient(address) as client:
        wait_for(lambda: code() is ErrorCode.NONE, f"a batch is taken for {topic}", otherwise=code)


_LATEST = -1


def wait_until_led(client: RawClient, *names: str, partition: int = 0) -> None:
    """Wait until a broker leads one partition of each topic."""
    wish = ListOffsetsRequest.ListOffsetsPartition(partition, -1, _LATEST)
    request = ListOffsetsRequest(
        topics=[ListOffsetsRequest.ListOffsetsTopic(name, [wish]) for name in names]
    )

    def are_served() -> bool:
        answer = client.ask(request, ListOffsetsResponse, 5)
        return {one.error_code for topic in answer.topics for one in topic.partitions} == {0}

    wait_for(are_served, f"{', '.join(names)} are served")


def topic_id(client: RawClient, name: str) -> bytes:
    """Return the id that a topic has, once the broker knows of it."""
    request = MetadataRequest([MetadataRequestTopic(name=name)])

    def known() -> bytes | None:
        (described,) = client.ask(request, MetadataResponse, 12).topics
        return None if described.topic_id == ZERO_UUID else described.topic_id

    return wait_for(known, f"{name} is known")


def entry(
    resource_type: AclResourceType,
    name: str,
    operation: AclOperation,
    *,
    principal: str = "User:ANONYMOUS",
    host: str = "*",
    permission: PermissionType = PermissionType.ALLOW,
) -> CreateAclsRequest.AclCreation:
    """Return an entry about one resource."""
    return CreateAclsRequest.AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def add_entries(client: RawClient, *entries: CreateAclsRequest.AclCreation) -> None:
    """Create entries; none of them may be refused."""
    response = client.ask(CreateAclsRequest(creations=list(entries)), CreateAclsResponse, 3)
    assert [result.error_code for result in response.results] == [0] * len(entries)
