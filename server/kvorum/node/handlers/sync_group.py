"""SyncGroup (14): a member takes its part of what the leader of the group has assigned."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError, refused_by_code
from kvorum.node.handlers.group_requests import asked, require_on_group
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_PROTOCOL: Final = 5


async def answer(request: IncomingRequest[SyncGroupRequest], broker: BrokerServices) -> Message:
    """Return the member's assignment, once the leader has sent it."""
    body = request.body
    are_names_mandatory = request.version >= FIRST_VERSION_WITH_PROTOCOL
    if are_names_mandatory and None in {body.protocol_type, body.protocol_name}:
        raise RequestError.with_default_message(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    require_on_group(request, AclOperation.READ, body.group_id)
    return await asked(broker.runtime, broker.groups.sync_group, body)


API: Final = BrokerApi(
    request=SyncGroupRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_code(SyncGroupResponse),
)
