"""SaslHandshake (17): these listeners do not authenticate their clients."""

from typing import Final

from kvorum.metadata.api import NONE, refused_by_code
from kvorum.node.services import BrokerApi, ControllerListenerApi
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kvorum.wire.primitives import Message


async def answer(_request: IncomingRequest[Message], _services: object) -> Message:
    """Refuse: a connection without SASL is never in a state to authenticate."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


ON_BROKER: Final = BrokerApi(
    request=SaslHandshakeRequest,
    permission=NONE,
    answer=answer,
    refuse=refused_by_code(SaslHandshakeResponse),
)
ON_CONTROLLER: Final = ControllerListenerApi(
    request=SaslHandshakeRequest,
    permission=NONE,
    answer=answer,
    refuse=refused_by_code(SaslHandshakeResponse),
)
