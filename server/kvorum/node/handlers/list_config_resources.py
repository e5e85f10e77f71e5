"""ListConfigResources (74): which resources have, or may have, configuration."""

from __future__ import annotations

from kvorum.broker.views.list_config_resources import list_config_resources
from kvorum.node.handlers.views import view_of
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.list_config_resources import ListConfigResourcesRequest
from kvorum.wire.primitives import Message


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Answer out of the broker's own metadata."""
    assert isinstance(request.body, ListConfigResourcesRequest)
    return list_config_resources(broker.loader.published, request.body, view_of(request, broker))
