"""ListTransactions (66): this broker coordinates no transaction, which is all there is to list."""

from __future__ import annotations

from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kvorum.wire.primitives import Message

STATES = frozenset(
    {
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Empty",
        "Dead",
        "PrepareEpochFence",
    }
)


async def on_broker(request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Return the empty list, and those states asked for that do not exist."""
    body = request.body
    assert isinstance(body, ListTransactionsRequest)
    unknown = [state for state in body.state_filters if state not in STATES]
    return ListTransactionsResponse(unknown_state_filters=unknown)
