"""CreateAcls (30) and DeleteAcls (31): the active controller changes access control entries."""

from __future__ import annotations

from kvorum.metadata.request_error import RequestError
from kvorum.node.services import ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Have the active controller answer; without an authorizer any controller refuses."""
    if not request.access.is_restricted:
        raise RequestError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return await controller.shell.write(request)
