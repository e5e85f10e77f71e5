"""What the active controller answers, once it is committed."""

from __future__ import annotations

from kvorum.node.services import ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.primitives import Message


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Have the controller of this node answer; NotControllerError where it is not active."""
    return await controller.shell.write(request)
