"""JoinGroup (11): a member enters the next generation of a classic group.

1. The client needs a permission on the group, whose coordinator must be this broker.
2. A member without an id gets one. It enters with that id in a second request from version 4 on,
   so that a lost response leaves no member behind (KIP-394).
3. The response waits until all members have joined, or the rebalance has timed out. The leader's
   names all members and what they subscribe to.

==========  ======================================================================================
version     brings
==========  ======================================================================================
1           the rebalance timeout; before, it was the session timeout
4           MEMBER_ID_REQUIRED (KIP-394)
5           static members, by `group.instance.id` (KIP-345)
6           the flexible encoding
7           the protocol's type, and null for its name (KIP-559)
8           the reason of a member (KIP-800)
9           a leader that must not assign, as a static member that came back (KIP-814)
==========  ======================================================================================
"""

from typing import Final

from kvorum.groups.outbox import FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.group_requests import asked, context_of, require_on_group
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest[JoinGroupRequest], broker: BrokerServices) -> Message:
    """Answer when all members have joined, or their time is over."""
    body = request.body
    require_on_group(request, AclOperation.READ, body.group_id)
    return await asked(broker.runtime, broker.groups.join_group, context_of(request), body)


def _refuse(_request: JoinGroupRequest, error: RequestError, version: int) -> JoinGroupResponse:
    has_null_name = version >= FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
    return JoinGroupResponse(error_code=error.code, protocol_name=None if has_null_name else "")


API: Final = BrokerApi(
    request=JoinGroupRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
