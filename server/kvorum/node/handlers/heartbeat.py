"""Heartbeat (12): a member of a classic group is still there."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, refused_by_code
from kvorum.node.handlers.group_requests import asked, require_on_group
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest[HeartbeatRequest], broker: BrokerServices) -> Message:
    """Keep the member's session, or have it join or find its coordinator again."""
    body = request.body
    require_on_group(request, AclOperation.READ, body.group_id)
    return await asked(broker.runtime, broker.groups.heartbeat, body)


API: Final = BrokerApi(
    request=HeartbeatRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_code(HeartbeatResponse),
)
