"""ExpireDelegationToken (40): refused here as far as a broker can judge, then forwarded."""

from __future__ import annotations

from typing import Final

from kvorum.controller.apis import expire_delegation_token as decided
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.handlers.requesters import requester_of
from kvorum.node.services import BrokerServices
from kvorum.node.serving.listener_api import ForwardedResponse, HandlerResponse
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest


async def answer(
    request: IncomingRequest[ExpireDelegationTokenRequest], broker: BrokerServices
) -> HandlerResponse:
    """Refuse clients that may not send requests about tokens; forward the rest."""
    refusal = decided.admit(request.body, requester_of(request, broker.config))
    if refusal is not None:
        return refusal
    return ForwardedResponse(await broker.forwarder.forward(request))


API: Final = BrokerApi(
    key=ApiKey.EXPIRE_DELEGATION_TOKEN,
    request=ExpireDelegationTokenRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=decided.API.refuse,
)
