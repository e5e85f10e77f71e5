"""DeleteAcls (31): there is nothing to delete them in without an authorizer."""

from __future__ import annotations

from kvorum.node.request import IncomingRequest
from kvorum.node.services import ControllerServices
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_acls import (
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteAclsResponseDeleteAclsFilterResult,
)
from kvorum.wire.primitives import Message

NO_AUTHORIZER = "No Authorizer is configured."


async def on_controller(request: IncomingRequest, _controller: ControllerServices) -> Message:
    """Refuse every part of the request: access is not controlled here."""
    assert isinstance(request.body, DeleteAclsRequest)
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponseDeleteAclsFilterResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
            )
            for _ in request.body.filters
        ]
    )
