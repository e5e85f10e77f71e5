"""ListGroups (16): this broker coordinates no group, which is all there is to list.

Tools ask it as a matter of course: kafka-configs does for every group it describes.
"""

from __future__ import annotations

from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices
from kvorum.wire.messages.list_groups import ListGroupsResponse
from kvorum.wire.primitives import Message


async def on_broker(_request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Return the empty list."""
    return ListGroupsResponse()
