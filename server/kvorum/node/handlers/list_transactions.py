"""ListTransactions (66): the transactional ids that this broker coordinates."""

from typing import Any, Final

import re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs] - it has no types

from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import PER_RESOURCE, RequestError, refused_by_code
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.transactions.listing import Pattern, TransactionFilter
from kvorum.transactions.transaction_state import STATES_BY_WIRE_NAME
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kvorum.wire.primitives import Message

_RE2: Final[Any] = re2


async def answer(
    request: IncomingRequest[ListTransactionsRequest], broker: BrokerServices
) -> Message:
    """List the ids that the client may know of, and the requested states that do not exist."""
    body = request.body
    wanted = TransactionFilter.of(body, _pattern(body.transactional_id_pattern))
    access = request.access
    kind = AclResourceType.TRANSACTIONAL_ID
    return ListTransactionsResponse(
        unknown_state_filters=[
            name for name in body.state_filters if name not in STATES_BY_WIRE_NAME
        ],
        transaction_states=[
            one
            for one in broker.transaction_coordinator.list_transactions(wanted)
            if access.allows(AclOperation.DESCRIBE, kind, one.transactional_id)
        ],
    )


def _pattern(text: str | None) -> Pattern | None:
    """Return a compiled pattern; None for none."""
    if not text:
        return None
    try:
        compiled: Pattern = _RE2.compile(text)
    except _RE2.error as error:
        raise RequestError.with_default_message(ErrorCode.INVALID_REGULAR_EXPRESSION) from error
    return compiled


API: Final = BrokerApi(
    request=ListTransactionsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_code(ListTransactionsResponse),
)
