"""ListPartitionReassignments (46)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvorum.controller.result import ControllerResult
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponseOngoingPartitionReassignment as OngoingPartitionReassignment,
)
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponseOngoingTopicReassignment as OngoingTopicReassignment,
)


def list_partition_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest, context: ControllerContext
) -> ControllerResult[ListPartitionReassignmentsResponse]:
    """List what is being reassigned; topics and partitions that are unknown are passed over."""
    del context
    topics = [
        OngoingTopicReassignment(name=topic.name, partitions=ongoing)
        for topic, indexes in _wanted(image, request)
        if (ongoing := list(_ongoing(topic, indexes)))
    ]
    return ControllerResult(ListPartitionReassignmentsResponse(error_message=None, topics=topics))


def _wanted(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> Iterator[tuple[TopicImage, Iterable[int]]]:
    if request.topics is None:
        for topic in image.topics.sorted_topics():
            yield topic, sorted(topic.partitions)
        return
    for wanted in request.topics:
        found = image.topics.by_name(wanted.name)
        if found is not None:
            yield found, wanted.partition_indexes


def _ongoing(topic: TopicImage, indexes: Iterable[int]) -> Iterator[OngoingPartitionReassignment]:
    for index in indexes:
        partition = topic.partitions.get(index)
        if partition is not None and partition.is_reassigning:
            yield OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
