"""OffsetCommit (8): the offsets from which a group goes on."""

from collections.abc import Iterable
from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.committed_topics import AnsweredTopic, CommittedTopics, refused_topics
from kvorum.node.handlers.group_requests import asked, context_of, require_on_group
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
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
    has_ids = request.version >= FIRST_VERSION_WITH_TOPIC_IDS
    found: CommittedTopics[OffsetCommitRequestPartition] = CommittedTopics(
        request, body.topics, broker.loader.published.topics, has_ids=has_ids
    )
    if not found.accepted:
        return _response(found.answered)
    accepted = OffsetCommitRequest(
        group_id=body.group_id,
        generation_id_or_member_epoch=body.generation_id_or_member_epoch,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        retention_time_ms=body.retention_time_ms,
        topics=[
            OffsetCommitRequestTopic(one.name, one.topic_id, one.partitions)
            for one in found.accepted
        ],
    )
    try:
        response = await asked(
            broker.runtime, broker.groups.commit_offsets, context_of(request), accepted
        )
    except RequestError as error:
        response = _refuse(accepted, error, request.version)
    if not found.is_refused:
        # As in Kafka, a topic that the request names twice then stays apart.
        return response
    return _response(found.merge(response.topics))


def _response(topics: Iterable[AnsweredTopic]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                one.name,
                one.topic_id,
                [OffsetCommitResponsePartition(*each) for each in one.partitions],
            )
            for one in topics
        ]
    )


def _refuse(
    request: OffsetCommitRequest, error: RequestError, _version: int
) -> OffsetCommitResponse:
    return _response(refused_topics(request.topics, error.code))


API: Final = BrokerApi(
    request=OffsetCommitRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
