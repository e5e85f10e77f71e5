"""OffsetCommit (8): the offsets from which a group goes on."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.handlers.group_requests import asked, context_of, require_on_group
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_TOPIC_IDS: Final = 10


async def answer(request: IncomingRequest[OffsetCommitRequest], broker: BrokerServices) -> Message:
    """Commit what the client may commit; what is refused before that comes first."""
    body = request.body
    require_on_group(request, AclOperation.READ, body.group_id)
    found = _Topics(request, broker.loader.published.topics)
    for topic in body.topics:
        found.sort_out(topic)
    if not found.accepted:
        return found.merged([])
    accepted = OffsetCommitRequest(
        group_id=body.group_id,
        generation_id_or_member_epoch=body.generation_id_or_member_epoch,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        retention_time_ms=body.retention_time_ms,
        topics=found.accepted,
    )
    try:
        response = await asked(broker.groups.commit_offsets, context_of(request), accepted)
    except RequestError as error:
        response = _refuse(accepted, error, request.version)
    return found.merged(response.topics)


class _Topics:
    """The topics of a request: what is refused at once, and what the coordinator has to see."""

    def __init__(self, request: IncomingRequest[OffsetCommitRequest], topics: TopicsImage) -> None:
        self.has_ids = request.version >= FIRST_VERSION_WITH_TOPIC_IDS
        self.accepted: list[OffsetCommitRequestTopic] = []
        self._refused: dict[str | bytes, OffsetCommitResponseTopic] = {}
        self._access = request.access
        self._topics = topics

    def merged(self, answered: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
        """Return what is refused, then what the coordinator has answered, by topic.

        As in Kafka, a topic that the request names twice stays apart where nothing is refused.
        """
        if not self._refused:
            return OffsetCommitResponse(topics=answered)
        for topic in answered:
            self._add(topic)
        return OffsetCommitResponse(topics=list(self._refused.values()))

    def sort_out(self, topic: OffsetCommitRequestTopic) -> None:
        """Look at one topic of the request."""
        found = self._find(topic)
        if self.has_ids:
            topic.name = "" if found is None else found.name
        indexes = [partition.partition_index for partition in topic.partitions]
        if self.has_ids and found is None:
            self._refuse(topic, indexes, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not self._access.allows_on_topic(AclOperation.READ, topic.name):
            self._refuse(topic, indexes, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif found is None:
            self._refuse(topic, indexes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            self._sort_partitions(topic, found)

    def _find(self, topic: OffsetCommitRequestTopic) -> TopicImage | None:
        if self.has_ids:
            return self._topics.by_id.get(topic.topic_id)
        return self._topics.by_name(topic.name)

    def _sort_partitions(self, topic: OffsetCommitRequestTopic, found: TopicImage) -> None:
        known = [one for one in topic.partitions if _has_partition(found, one.partition_index)]
        unknown = [
            one.partition_index
            for one in topic.partitions
            if not _has_partition(found, one.partition_index)
        ]
        topic.topic_id = found.id
        if unknown:
            self._refuse(topic, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if known:
            self.accepted.append(OffsetCommitRequestTopic(found.name, found.id, known))

    def _refuse(self, topic: OffsetCommitRequestTopic, indexes: list[int], code: ErrorCode) -> None:
        partitions = [OffsetCommitResponsePartition(index, code) for index in indexes]
        self._add(OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions))

    def _add(self, topic: OffsetCommitResponseTopic) -> None:
        known = self._refused.setdefault(topic.topic_id if self.has_ids else topic.name, topic)
        if known is not topic:
            known.partitions += topic.partitions


def _has_partition(topic: TopicImage, index: int) -> bool:
    return topic.partitions.get(index) is not None


def _refuse(
    request: OffsetCommitRequest, error: RequestError, _version: int
) -> OffsetCommitResponse:
    """Refuse every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [
                    OffsetCommitResponsePartition(partition.partition_index, error.code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


API: Final = BrokerApi(
    key=ApiKey.OFFSET_COMMIT,
    request=OffsetCommitRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
