"""SaslAuthenticate (36): these listeners do not authenticate their clients."""

from typing import Final

from kvorum.metadata.api import NONE, refused_by_message
from kvorum.node.services import BrokerApi, ControllerListenerApi
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.primitives import Message


async def answer(_request: IncomingRequest[Message], _services: object) -> Message:
    """Refuse: a connection without SASL is never in a state to authenticate."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


ON_BROKER: Final = BrokerApi(
    request=SaslAuthenticateRequest,
    permission=NONE,
    answer=answer,
    refuse=refused_by_message(SaslAuthenticateResponse),
)
ON_CONTROLLER: Final = ControllerListenerApi(
    request=SaslAuthenticateRequest,
    permission=NONE,
    answer=answer,
    refuse=refused_by_message(SaslAuthenticateResponse),
)
