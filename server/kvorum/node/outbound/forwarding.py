"""Passing a client's request on to the active controller, in an Envelope (KIP-590)."""

from __future__ import annotations

import ipaddress
import struct

from kvorum.metadata.principal import Principal
from kvorum.metadata.request_error import RequestError
from kvorum.node.errors import CloseConnectionError
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.controller_channel import ControllerChannel, ControllerUnreachableError
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.apis import response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.headers import (
    decode_response_frame,
    encode_request_frame,
)
from kvorum.wire.messages.default_principal_data import DefaultPrincipalData
from kvorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kvorum.wire.primitives import Message

PRINCIPAL_VERSION = 0
_VERSION = struct.Struct(">h")


class Forwarder:
    """Has requests answered by the active controller."""

    def __init__(self, channel: ControllerChannel) -> None:
        self.channel = channel

    async def forward(self, request: IncomingRequest) -> bytes:
        """Return the whole frame of the controller's response to `request`, as it came.

        Raises RequestError where there is none, CloseConnectionError where the controller does not
        take the request's version.
        """
        return await self._ask(request, request.frame)

    async def forward_changed(self, request: IncomingRequest, body: Message) -> Message:
        """Return the controller's response to `body`, which takes the place of the request's own.

        Raises as `forward` does.
        """
        frame = await self._ask(request, _frame_with(request, body))
        try:
            kind = response_class(request.header.request_api_key)
            return decode_response_frame(frame, response_class=kind, version=request.version)[1]
        except WireError as error:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR) from error

    async def _ask(self, request: IncomingRequest, frame: bytes) -> bytes:
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(request.principal),
            client_host_address=ipaddress.ip_address(request.client_host.partition("%")[0]).packed,
        )
        try:
            answer = await self.channel.request(envelope, EnvelopeResponse)
        except ControllerUnreachableError as error:
            raise RequestError.with_default_message(ErrorCode.REQUEST_TIMED_OUT) from error
        except NoCommonVersionError as error:
            raise RequestError.with_default_message(ErrorCode.UNSUPPORTED_VERSION) from error
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise CloseConnectionError(
                f"the controller does not take version {request.version} of {request.body.NAME}"
            )
        if answer.error_code != ErrorCode.NONE or answer.response_data is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
        return bytes(answer.response_data)


def encode_principal(principal: Principal) -> bytes:
    """Return the bytes of Kafka's default principal form."""
    data = DefaultPrincipalData(
        type=principal.type,
        name=principal.name,
        token_authenticated=principal.is_token_authenticated,
    )
    return _VERSION.pack(PRINCIPAL_VERSION) + data.encode(PRINCIPAL_VERSION)


def decode_principal(data: bytes) -> Principal:
    """Return the principal in an envelope; raises RequestError (97) for anything else."""
    if len(data) < _VERSION.size:
        raise _no_principal()
    (version,) = _VERSION.unpack_from(data)
    if not DefaultPrincipalData.MIN_VERSION <= version <= DefaultPrincipalData.MAX_VERSION:
        raise _no_principal()
    try:
        found = DefaultPrincipalData.decode(data[_VERSION.size :], version)
    except WireError as error:
        raise _no_principal() from error
    return Principal(found.type, found.name, found.token_authenticated)


def _no_principal() -> RequestError:
    return RequestError.with_default_message(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)


def _frame_with(request: IncomingRequest, body: Message) -> bytes:
    header = request.header
    return encode_request_frame(
        body,
        version=request.version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )
