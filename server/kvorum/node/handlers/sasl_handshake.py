"""SaslHandshake (17): these listeners ask nobody to authenticate."""

from __future__ import annotations

from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.sasl_handshake import SaslHandshakeResponse
from kvorum.wire.primitives import Message


async def on_broker(_request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Refuse: the time to authenticate is over, or never was."""
    return _refusal()


async def on_controller(_request: IncomingRequest, _controller: ControllerServices) -> Message:
    """Refuse: the time to authenticate is over, or never was."""
    return _refusal()


def _refusal() -> Message:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
