"""ShareGroupHeartbeat (76): a member of a share group joins, stays or leaves (KIP-932)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError, refused_by_own_message
from kvorum.node.handlers.group_requests import context_of, require_on_group
from kvorum.node.handlers.share_requests import demand_share_groups, is_member_id
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.shield import shield
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[ShareGroupHeartbeatRequest], broker: BrokerServices
) -> Message:
    """Have the group decide, for a client that may read it and knows the topics that it names."""
    demand_share_groups(broker)
    body = request.body
    require_on_group(request, AclOperation.READ, body.group_id)
    if not is_member_id(body.member_id):
        raise RequestError(ErrorCode.INVALID_REQUEST)
    names = sorted(set(body.subscribed_topic_names or ()))
    if len(request.access.allowed_topics(AclOperation.DESCRIBE, names)) < len(names):
        raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    # The states that the member needs are initialized, whether or not it waits for its answer.
    return await shield(broker.runtime, broker.share_groups.heartbeat(context_of(request), body))


API: Final = BrokerApi(
    request=ShareGroupHeartbeatRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_own_message(ShareGroupHeartbeatResponse),
)
