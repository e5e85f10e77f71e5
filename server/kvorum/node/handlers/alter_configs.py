"""AlterConfigs (33): checked here as far as it is this broker's, then passed on."""

from __future__ import annotations

from kvorum.broker.views.alter_configs import reassemble_legacy, screen_legacy
from kvorum.node.handlers.views import view_of
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Refuse what makes no sense for this broker; the controller answers for the rest."""
    body = request.body
    assert isinstance(body, AlterConfigsRequest)
    screened = screen_legacy(body, view_of(request, broker))
    response: Message = AlterConfigsResponse()
    if screened.remaining.resources:
        response = await broker.forwarder.forward_changed(request, screened.remaining)
    assert isinstance(response, AlterConfigsResponse)
    return reassemble_legacy(body, screened.answers, response)
