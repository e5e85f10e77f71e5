"""The controller's front door: a request goes in, records and the answer come out."""

from __future__ import annotations

from kvorum.controller.errors import RequestError
from kvorum.controller.result import ControllerResult, Message
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.image import MetadataImage


def handle(
    image: MetadataImage, request: Message, context: ControllerContext
) -> ControllerResult[Message]:
    """Return what the active controller does with `request`, `image` being its pending state.

    A request that is refused as a whole is answered in its own response with the error Kafka
    would give, without records. Raises `KeyError` for a request the controller does not handle.
    """
    raise NotImplementedError


def error_response(request: Message, error: RequestError, *, api_version: int) -> Message:
    """Return the response that refuses the whole of `request` with `error`.

    This is also what a controller that is not active answers with (code 41).
    """
    raise NotImplementedError
