"""CreateAcls (30): there is nothing to create them in without an authorizer."""

from __future__ import annotations

from kvorum.node.request import IncomingRequest
from kvorum.node.services import ControllerServices
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    CreateAclsResponseAclCreationResult,
)
from kvorum.wire.primitives import Message

NO_AUTHORIZER = "No Authorizer is configured."


async def on_controller(request: IncomingRequest, _controller: ControllerServices) -> Message:
    """Refuse every part of the request: access is not controlled here."""
    assert isinstance(request.body, CreateAclsRequest)
    return CreateAclsResponse(
        results=[
            CreateAclsResponseAclCreationResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
            )
            for _ in request.body.creations
        ]
    )
