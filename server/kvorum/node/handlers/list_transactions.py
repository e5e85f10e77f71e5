"""ListTransactions (66): empty, because this broker coordinates no transactions."""

from typing import Final

from kvorum.metadata.api import PER_RESOURCE, refused_by_code
from kvorum.node.services import BrokerApi, BrokerServices
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


async def answer(
    request: IncomingRequest[ListTransactionsRequest], _broker: BrokerServices
) -> Message:
    """Return the empty list, and the requested states that do not exist."""
    unknown = [state for state in request.body.state_filters if state not in STATES]
    return ListTransactionsResponse(unknown_state_filters=unknown)


API: Final = BrokerApi(
    request=ListTransactionsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_code(ListTransactionsResponse),
)
