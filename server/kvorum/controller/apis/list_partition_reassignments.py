"""ListPartitionReassignments (46): lists partitions under reassignment."""

from collections.abc import Iterable, Iterator
from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.quorum_reassignment.quorum_targets import ongoing_quorum_reassignment
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
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
    image: MetadataImage,
    request: ListPartitionReassignmentsRequest,
    context: ControllerRequestContext,
) -> ControllerResult[ListPartitionReassignmentsResponse]:
    """List partitions under reassignment; unknown topics and partitions are skipped.

    A reassignment of the quorum (KIP-642) is listed as that of the metadata log's partition.
    """
    topics = _quorum(image, request, context)
    topics += [
        OngoingTopicReassignment(name=topic.name, partitions=ongoing)
        for topic, indexes in _wanted(image, request)
        if (ongoing := list(_ongoing(topic, indexes)))
    ]
    return ControllerResult(ListPartitionReassignmentsResponse(error_message=None, topics=topics))


def _quorum(
    image: MetadataImage,
    request: ListPartitionReassignmentsRequest,
    context: ControllerRequestContext,
) -> list[OngoingTopicReassignment]:
    if request.topics is not None and not any(
        topic.name == CLUSTER_METADATA_TOPIC
        and CLUSTER_METADATA_PARTITION in topic.partition_indexes
        for topic in request.topics
    ):
        return []
    found = ongoing_quorum_reassignment(image, context)
    if found is None:
        return []
    partition = OngoingPartitionReassignment(
        partition_index=CLUSTER_METADATA_PARTITION,
        replicas=list(found.replicas),
        adding_replicas=list(found.adding),
        removing_replicas=list(found.removing),
    )
    return [OngoingTopicReassignment(name=CLUSTER_METADATA_TOPIC, partitions=[partition])]


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


def _refuse(
    request: ListPartitionReassignmentsRequest, error: RequestError, _version: int
) -> ListPartitionReassignmentsResponse:
    response = ListPartitionReassignmentsResponse(
        error_code=error.code, error_message=error.message
    )
    for topic in request.topics or ():
        partitions = [OngoingPartitionReassignment(index) for index in topic.partition_indexes]
        response.topics.append(OngoingTopicReassignment(topic.name, partitions))
    return response


API: Final = ControllerApi(
    request=ListPartitionReassignmentsRequest,
    permission=AclOperation.DESCRIBE,
    decide=list_partition_reassignments,
    refuse=_refuse,
)
