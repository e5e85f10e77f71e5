"""ListGroups (16): there are none, since no coordinator can be had for any."""

from __future__ import annotations

from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.list_groups import ListGroupsResponse
from kvorum.wire.primitives import Message


async def on_broker(_request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Name no group."""
    return ListGroupsResponse()
