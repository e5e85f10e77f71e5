"""What a broker has the active controller answer."""

from __future__ import annotations

from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest


async def on_broker(request: IncomingRequest, broker: BrokerServices) -> bytes:
    """Pass the request on as it came."""
    return await broker.forwarder.forward(request)
