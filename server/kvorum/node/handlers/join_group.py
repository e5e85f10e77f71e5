"""JoinGroup (11): a member enters the next generation of a classic group."""

from __future__ import annotations

from typing import Final

from kvorum.groups.effects import FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.node.handlers.group_requests import context_of, require_on_group
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest[JoinGroupRequest], broker: BrokerServices) -> Message:
    """Answer when all members have joined, or their time is over."""
    body = request.body
    require_on_group(request, AclOperation.READ, body.group_id)
    return await broker.groups.join_group(context_of(request), body)


def _refuse(_request: JoinGroupRequest, error: RequestError, version: int) -> JoinGroupResponse:
    has_null_name = version >= FIRST_VERSION_WITH_NULL_PROTOCOL_NAME
    return JoinGroupResponse(error_code=error.code, protocol_name=None if has_null_name else "")


API: Final = BrokerApi(
    key=ApiKey.JOIN_GROUP,
    request=JoinGroupRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
