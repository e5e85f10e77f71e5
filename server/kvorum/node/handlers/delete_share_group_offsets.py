"""DeleteShareGroupOffsets (92): topics of which a share group without members forgets all."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, refused_by_message_or_default
from kvorum.node.handlers.group_requests import require_on_group
from kvorum.node.handlers.share_requests import demand_share_groups
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.shield import shield
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kvorum.wire.primitives import Message

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def answer(
    request: IncomingRequest[DeleteShareGroupOffsetsRequest], broker: BrokerServices
) -> Message:
    """Delete offsets; the coordinator is asked even if nothing is left for it."""
    demand_share_groups(broker)
    body = request.body
    require_on_group(request, AclOperation.DELETE, body.group_id)
    denied: list[DeleteShareGroupOffsetsResponseTopic] = []
    accepted: list[DeleteShareGroupOffsetsRequestTopic] = []
    for topic in body.topics:
        if request.access.allows_on_topic(AclOperation.READ, topic.topic_name):
            accepted.append(topic)
            continue
        denied.append(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                error_code=_DENIED,
                error_message=_DENIED.default_message,
            )
        )
    wanted = DeleteShareGroupOffsetsRequest(body.group_id, accepted)
    response = await shield(broker.runtime, broker.share_groups.delete_offsets(wanted))
    return DeleteShareGroupOffsetsResponse(responses=[*denied, *response.responses])


API: Final = BrokerApi(
    request=DeleteShareGroupOffsetsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_message_or_default(DeleteShareGroupOffsetsResponse),
)
