"""FindCoordinator (10): refused; groups and transactions need partitions that carry records."""

from __future__ import annotations

from kvorum.node.handlers.no_data import ERROR, MESSAGE
from kvorum.node.request import IncomingRequest
from kvorum.node.services import BrokerServices
from kvorum.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_MANY_KEYS = 4


async def on_broker(request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Refuse each key."""
    body = request.body
    assert isinstance(body, FindCoordinatorRequest)
    if request.version < FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(error_code=ERROR, error_message=MESSAGE, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponseCoordinator(
                key=key, node_id=-1, port=-1, error_code=ERROR, error_message=MESSAGE
            )
            for key in body.coordinator_keys
        ]
    )
