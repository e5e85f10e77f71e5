"""Kafka's ForwardingManager: clients' requests to the active controller in Envelopes (KIP-590)."""

import ipaddress
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from kvorum.metadata.api import RequestError
from kvorum.metadata.standard_authorizer import Principal
from kvorum.node.coroutines import Wait
from kvorum.node.errors import CloseConnectionError, NotControllerError
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import (
    ControllerUnreachableError,
    NodeToControllerChannelManager,
)
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.apis import response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)


class OwnController(Protocol):
    """The controller of a node that is broker and controller."""

    @property
    def is_active(self) -> bool:
        """Whether it is the active controller."""
        ...

    def answer_forwarded(
        self, frame: bytes, principal: Principal, host: str
    ) -> Coroutine[Wait[Any], Any, bytes]:
        """Return the frame of the response to the request of a client at `host`.

        Raises NotControllerError, CloseConnectionError, or RequestError.
        """
        ...


class ForwardingManager:
    """Forwards requests to the active controller and returns its responses.

    `own_controller` is that of this node, if it has one; while it is active no connection is used.
    """

    def __init__(
        self, channel: NodeToControllerChannelManager, own_controller: OwnController | None
    ) -> None:
        self.channel = channel
        self._own_controller = own_controller

    async def forward(self, request: IncomingRequest[Message]) -> bytes:
        """Return the whole frame of the controller's response to `request`, unchanged.

        Raises RequestError without one, CloseConnectionError if the controller does not
        serve the request's version.
        """
        return await self._ask(request, request.frame)

    async def forward_changed(
        self, request: IncomingRequest[Message], body: Message, kind: type[Response]
    ) -> Response:
        """Return the controller's response to `body`, which replaces the request's own body.

        Raises as `forward` does.
        """
        frame = await self._ask(request, _frame_with(request, body))
        return _read_response(frame, kind, request.version)

    async def _ask(self, request: IncomingRequest[Message], frame: bytes) -> bytes:
        host = request.client_host.partition("%")[0]
        own = self._own_controller
        if own is not None and own.is_active:
            # It may lose the leadership meanwhile: then the next one is asked.
            with suppress(NotControllerError):
                return await own.answer_forwarded(frame, request.principal, host)
        return await self._ask_over_channel(request, frame, host)

    async def _ask_over_channel(
        self, request: IncomingRequest[Message], frame: bytes, host: str
    ) -> bytes:
        # Imported here: nothing is forwarded while a node starts.
        from kvorum.node.principal_serde import encode_principal  # noqa: PLC0415 - see above

        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(request.principal),
            client_host_address=ipaddress.ip_address(host).packed,
        )
        try:
            answer = await self.channel.send(envelope, EnvelopeResponse)
        except ControllerUnreachableError as error:
            raise RequestError.with_default_message(ErrorCode.REQUEST_TIMED_OUT) from error
        except NoCommonVersionError as error:
            raise RequestError.with_default_message(ErrorCode.UNSUPPORTED_VERSION) from error
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise CloseConnectionError(
                f"the controller does not serve version {request.version} of {request.body.NAME}"
            )
        if answer.error_code != ErrorCode.NONE or answer.response_data is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
        return bytes(answer.response_data)


def read_response(request: IncomingRequest[Message], frame: bytes) -> Message:
    """Return the response to `request` in a frame; raises RequestError if it is not one."""
    return _read_response(frame, response_class(request.header.request_api_key), request.version)


def _read_response(frame: bytes, kind: type[Response], version: int) -> Response:
    try:
        return decode_response_frame(frame, response_class=kind, version=version)[1]
    except WireError as error:
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def _frame_with(request: IncomingRequest[Message], body: Message) -> bytes:
    header = request.header
    return encode_request_frame(
        body,
        version=request.version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )
