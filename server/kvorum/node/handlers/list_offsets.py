"""ListOffsets (2): every partition is empty, so it begins and ends at offset 0."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
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
LATEST, EARLIEST, EARLIEST_LOCAL = -1, -2, -4
FIRST_VERSIONS: Mapping[int, int] = MappingProxyType(
    {LATEST: 1, EARLIEST: 1, -3: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}
)
"""The first version in which each special timestamp may be requested."""
PLACES_OF_AN_EMPTY_LOG = frozenset({LATEST, EARLIEST, EARLIEST_LOCAL})
"""All other timestamps, above all that of a record, have no offset in an empty log."""


async def answer(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer for the partitions that this broker leads."""
    body = request.body
    assert isinstance(body, ListOffsetsRequest)
    topics = broker.loader.published.topics
    names = (topic.name for topic in body.topics)
    allowed = request.access.allowed_topics(AclOperation.DESCRIBE, names)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponseListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _partition(asked, _find(topics, topic.name, asked), broker, request.version)
                    for asked in topic.partitions
                ],
            )
            for topic in body.topics
            if topic.name in allowed
        ]
        + [
            _refused_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for topic in body.topics
            if topic.name not in allowed
        ]
    )


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
    if place < 0 and version < FIRST_VERSIONS.get(place, version + 1):
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
