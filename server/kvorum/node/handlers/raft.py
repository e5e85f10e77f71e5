"""What the replica of the metadata log answers: to its peers, and about the quorum."""

from __future__ import annotations

from kvorum.node.errors import CloseConnectionError
from kvorum.node.raft import RaftStoppedError
from kvorum.node.services import ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.primitives import Message


async def on_controller(request: IncomingRequest, controller: ControllerServices) -> Message:
    """Hand the request to the replica; one that has stopped has nothing to say to anybody."""
    try:
        return await controller.raft.handle_request(
            request.body, version=request.version, listener_name=request.listener
        )
    except RaftStoppedError as error:
        raise CloseConnectionError(str(error)) from error
