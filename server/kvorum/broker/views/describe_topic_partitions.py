"""DescribeTopicPartitions (75): the partitions of topics, one page at a time (KIP-966)."""

from typing import Final

from kvorum.broker.view_api import BrokerView, ViewApi
from kvorum.broker.views.metadata_topic import find_topic, may_describe, operations_on, topic_names
from kvorum.broker.views.partitions import NO_NODE, has_listener, offline_replicas
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.topic_names import INTERNAL_TOPICS, reason_name_is_illegal
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def describe_topic_partitions(
    image: MetadataImage, request: DescribeTopicPartitionsRequest, view: BrokerView
) -> DescribeTopicPartitionsResponse:
    """Describe topics in order of name, from the cursor on, up to the size of a page.

    Raises `RequestError` INVALID_REQUEST for an invalid cursor.
    """
    asked = _names_from_cursor(image, request, view)
    names = [name for name in asked if may_describe(name, view)]
    response = DescribeTopicPartitionsResponse()
    left = max(min(view.request_partitions_max, request.response_partition_limit), 1)
    for name in names:
        start = 0
        if request.cursor is not None and name == request.cursor.topic_name:
            start = request.cursor.partition_index
        topic = find_topic(image, name, view)
        if left == 0:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(name, 0)
            break
        if topic is None:
            if request.topics:
                response.topics.append(_unknown(name))
            continue
        end = min(len(topic.partitions), start + left)
        answer = _topic(image, topic, range(start, end), view)
        response.topics.append(answer)
        if end < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(name, end)
            break
        left -= len(answer.partitions)
    for answered in response.topics:
        assert answered.name is not None
        answered.topic_authorized_operations = operations_on(answered.name, view)
    if request.topics:
        response.topics.extend(_refused(name) for name in asked if name not in names)
    return response


def _names_from_cursor(
    image: MetadataImage, request: DescribeTopicPartitionsRequest, view: BrokerView
) -> list[str]:
    cursor = request.cursor
    first = cursor.topic_name if cursor is not None else ""
    asked = {topic.name for topic in request.topics} or set(topic_names(image, view))
    names = sorted(name for name in asked if name >= first)
    if cursor is None:
        return names
    if request.topics and cursor.topic_name not in names:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic: "
            f"{cursor.topic_name}",
        )
    if cursor.partition_index < 0:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest cursor partition must be valid: "
            f"Cursor(topicName='{cursor.topic_name}', partitionIndex={cursor.partition_index})",
        )
    return names


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_legal = reason_name_is_illegal(name) is None
    return DescribeTopicPartitionsResponseTopic(
        error_code=(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
        ),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
    )


def _topic(
    image: MetadataImage, topic: TopicImage, indexes: range, view: BrokerView
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(image, index, topic.partitions[index], view)
            for index in indexes
            if index in topic.partitions
        ],
    )


def _partition(
    image: MetadataImage, index: int, partition: PartitionRegistration, view: BrokerView
) -> DescribeTopicPartitionsResponsePartition:
    leads = has_listener(image.cluster, partition.leader, view.listener)
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=partition.leader if leads else NO_NODE,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(image.cluster, partition, view.listener),
    )


def _refuse(
    request: DescribeTopicPartitionsRequest, error: RequestError, _version: int
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=error.code)
            for topic in request.topics
        ]
    )


API: Final = ViewApi(
    request=DescribeTopicPartitionsRequest,
    permission=PER_RESOURCE,
    answer=describe_topic_partitions,
    refuse=_refuse,
)
