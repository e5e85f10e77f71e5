"""LeaveGroup (13): members of a classic group go, or an operator removes static ones."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError, refused_by_code
from kvorum.node.handlers.group_requests import asked, require_on_group
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_MEMBERS: Final = 3


async def answer(request: IncomingRequest[LeaveGroupRequest], broker: BrokerServices) -> Message:
    """Remove the members; versions before 3 name only one."""
    body = request.body
    require_on_group(request, AclOperation.READ, body.group_id)
    has_list = request.version >= FIRST_VERSION_WITH_MEMBERS
    if not has_list:
        body = LeaveGroupRequest(
            group_id=body.group_id, members=[LeaveGroupRequest.MemberIdentity(body.member_id)]
        )
    try:
        response = await asked(broker.runtime, broker.groups.leave_group, body)
    except RequestError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        response = _strangers(body)
    if has_list or response.error_code != ErrorCode.NONE:
        return response
    return LeaveGroupResponse(error_code=response.members[0].error_code)


def _strangers(request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Return the response for a group that does not exist."""
    return LeaveGroupResponse(
        members=[
            LeaveGroupResponse.MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for member in request.members
        ]
    )


API: Final = BrokerApi(
    request=LeaveGroupRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_code(LeaveGroupResponse),
)
