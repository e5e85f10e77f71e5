"""ListOffsets (2): the metadata topic, where that may be read; all other partitions are empty.

An empty partition begins and ends at offset 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.standard_authorizer import Access
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.metadata_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    MAX_TIMESTAMP,
    find_offset,
)
from kvorum.node.broker.metadata_topic import MetadataTopic
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.errors import StorageError
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_EPOCH = 4
FIRST_VERSIONS: Mapping[int, int] = MappingProxyType(
    {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}
)
"""The first version in which each special timestamp may be requested."""
PLACES_OF_AN_EMPTY_LOG = frozenset({LATEST, EARLIEST, EARLIEST_LOCAL})
"""All other timestamps, above all that of a record, have no offset in an empty log."""


async def answer(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer for the metadata topic, and for the partitions that this broker leads."""
    body = request.body
    assert isinstance(body, ListOffsetsRequest)
    allowed = _allowed_topics(body, request.access, broker)
    counts = _times_asked(body)
    response = ListOffsetsResponse()
    for topic in body.topics:
        if topic.name in allowed:
            response.topics.append(await _topic(topic, counts, request.version, broker))
    response.topics += [
        _refused_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for topic in body.topics
        if topic.name not in allowed
    ]
    return response


def _allowed_topics(
    body: ListOffsetsRequest, access: Access, broker: BrokerServices
) -> frozenset[str]:
    """Return the topics that the client may describe; the metadata is described by the cluster."""
    names = {topic.name for topic in body.topics}
    if broker.metadata_topic is None:
        return access.allowed_topics(AclOperation.DESCRIBE, names)
    may_read_metadata = access.allows_on_cluster(AclOperation.DESCRIBE)
    allowed = access.allowed_topics(AclOperation.DESCRIBE, names - {CLUSTER_METADATA_TOPIC})
    return allowed | {CLUSTER_METADATA_TOPIC} if may_read_metadata else allowed


async def _topic(
    topic: ListOffsetsRequestListOffsetsTopic,
    counts: Counter[int],
    version: int,
    broker: BrokerServices,
) -> ListOffsetsResponseListOffsetsTopicResponse:
    served = broker.metadata_topic
    if served is not None and topic.name == CLUSTER_METADATA_TOPIC:
        partitions = [
            await _in_metadata(asked, counts, version, served) for asked in topic.partitions
        ]
    else:
        topics = broker.loader.published.topics
        partitions = [
            _partition(asked, _find(topics, topic.name, asked), broker, version)
            for asked in topic.partitions
        ]
    return ListOffsetsResponseListOffsetsTopicResponse(name=topic.name, partitions=partitions)


async def _in_metadata(
    asked: ListOffsetsRequestListOffsetsPartition,
    counts: Counter[int],
    version: int,
    served: MetadataTopic,
) -> ListOffsetsResponseListOffsetsPartitionResponse:
    """Answer for a partition of the metadata topic; as in Kafka, only one asked about once."""
    found = ListOffsetsResponseListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if counts[asked.partition_index] > 1:
        found.error_code = ErrorCode.INVALID_REQUEST
    elif not _has_version(asked.timestamp, version):
        found.error_code = ErrorCode.UNSUPPORTED_VERSION
    elif asked.partition_index != CLUSTER_METADATA_PARTITION:
        found.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        await _look_up(found, asked.timestamp, served, version)
    return found


def _times_asked(body: ListOffsetsRequest) -> Counter[int]:
    """Return how often the whole request names each partition of the metadata topic."""
    return Counter(
        asked.partition_index
        for topic in body.topics
        if topic.name == CLUSTER_METADATA_TOPIC
        for asked in topic.partitions
    )


async def _look_up(
    found: ListOffsetsResponseListOffsetsPartitionResponse,
    timestamp: int,
    served: MetadataTopic,
    version: int,
) -> None:
    try:
        place = await find_offset(served, timestamp)
    except StorageError as error:
        served.report(error)
        found.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return
    found.offset, found.timestamp = place.offset, place.timestamp
    if version >= FIRST_VERSION_WITH_EPOCH:
        found.leader_epoch = place.leader_epoch


def _has_version(timestamp: int, version: int) -> bool:
    """Return whether a timestamp, or the place that it stands for, is known in a version."""
    return timestamp >= 0 or version >= FIRST_VERSIONS.get(timestamp, version + 1)


def _refused_topic(
    topic: ListOffsetsRequestListOffsetsTopic, code: ErrorCode
) -> ListOffsetsResponseListOffsetsTopicResponse:
    return ListOffsetsResponseListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsResponseListOffsetsPartitionResponse(
                partition_index=asked.partition_index, error_code=code
            )
            for asked in topic.partitions
        ],
    )


def _find(
    topics: TopicsImage, name: str, asked: ListOffsetsRequestListOffsetsPartition
) -> PartitionRegistration | None:
    topic = topics.by_name(name)
    return None if topic is None else topic.partitions.get(asked.partition_index)


def _partition(
    asked: ListOffsetsRequestListOffsetsPartition,
    partition: PartitionRegistration | None,
    broker: BrokerServices,
    version: int,
) -> ListOffsetsResponseListOffsetsPartitionResponse:
    found = ListOffsetsResponseListOffsetsPartitionResponse(partition_index=asked.partition_index)
    place = asked.timestamp
    if not _has_version(place, version):
        found.error_code = ErrorCode.UNSUPPORTED_VERSION
    elif partition is None:
        found.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif partition.leader != broker.config.node_id:
        found.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif place in PLACES_OF_AN_EMPTY_LOG:
        found.offset = 0
        if version >= FIRST_VERSION_WITH_EPOCH:
            found.leader_epoch = partition.leader_epoch
    return found


def _refuse(request: ListOffsetsRequest, error: RequestError, _version: int) -> ListOffsetsResponse:
    """Refuse every partition."""
    return ListOffsetsResponse(
        topics=[_refused_topic(topic, error.code) for topic in request.topics]
    )


API: Final = BrokerApi(
    key=ApiKey.LIST_OFFSETS,
    request=ListOffsetsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
