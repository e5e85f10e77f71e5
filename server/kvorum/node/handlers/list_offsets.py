"""ListOffsets (2): every partition is empty, so it begins and ends at offset 0."""

from __future__ import annotations

from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices
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
NO_EPOCH = -1
LATEST, EARLIEST, EARLIEST_LOCAL = -1, -2, -4
PLACES_OF_AN_EMPTY_LOG = frozenset({LATEST, EARLIEST, EARLIEST_LOCAL})
"""The others, the time of a record above all, are nowhere in an empty log."""


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer for the partitions that this broker leads."""
    body = request.body
    assert isinstance(body, ListOffsetsRequest)
    topics = broker.loader.published.topics
    response = ListOffsetsResponse(
        topics=[_topic(topic, topics, broker.config.node_id) for topic in body.topics]
    )
    if request.version < FIRST_VERSION_WITH_EPOCH:
        for topic in response.topics:
            for partition in topic.partitions:
                partition.leader_epoch = NO_EPOCH
    return response


def _topic(
    topic: ListOffsetsRequestListOffsetsTopic, topics: TopicsImage, node_id: int
) -> ListOffsetsResponseListOffsetsTopicResponse:
    known = topics.by_name(topic.name)
    return ListOffsetsResponseListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            _partition(
                asked, known.partitions.get(asked.partition_index) if known else None, node_id
            )
            for asked in topic.partitions
        ],
    )


def _partition(
    asked: ListOffsetsRequestListOffsetsPartition,
    partition: PartitionRegistration | None,
    node_id: int,
) -> ListOffsetsResponseListOffsetsPartitionResponse:
    answer = ListOffsetsResponseListOffsetsPartitionResponse(partition_index=asked.partition_index)
    if partition is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif partition.leader != node_id:
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif asked.timestamp in PLACES_OF_AN_EMPTY_LOG:
        answer.offset = 0
        answer.leader_epoch = partition.leader_epoch
    return answer
