"""CreateDelegationToken (38): refused here as far as a broker can judge, then forwarded."""

from typing import Final

from kvorum.controller.apis import create_delegation_token as decided
from kvorum.metadata.api import PER_RESOURCE
from kvorum.metadata.standard_authorizer import USER_TYPE
from kvorum.node.handlers.requesters import requester_of
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import EncodedResponse, HandlerResponse
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_delegation_token import CreateDelegationTokenRequest


async def answer(
    request: IncomingRequest[CreateDelegationTokenRequest], broker: BrokerServices
) -> HandlerResponse:
    """Refuse clients that may not create tokens, and invalid renewers; forward the rest."""
    body = request.body
    requester = requester_of(request)
    refusal = decided.admit(body, requester)
    if refusal is not None:
        return refusal
    if any(renewer.principal_type != USER_TYPE for renewer in body.renewers):
        return decided.refuse_creation(body, requester, ErrorCode.INVALID_PRINCIPAL_TYPE)
    return EncodedResponse(await broker.forwarder.forward(request))


API: Final = BrokerApi(
    request=CreateDelegationTokenRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=decided.API.refuse,
)
