"""IncrementalAlterConfigs (44): checked here as far as it is this broker's, then passed on."""

from __future__ import annotations

from kvorum.broker.views.alter_configs import reassemble_incremental, screen_incremental
from kvorum.node.handlers.views import view_of
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Refuse what makes no sense for this broker; the controller answers for the rest."""
    body = request.body
    assert isinstance(body, IncrementalAlterConfigsRequest)
    screened = screen_incremental(broker.loader.published, body, view_of(request, broker))
    response: Message = IncrementalAlterConfigsResponse()
    if screened.remaining.resources:
        response = await broker.forwarder.forward_changed(request, screened.remaining)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return reassemble_incremental(body, screened.answers, response)
