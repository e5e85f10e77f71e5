"""DescribeTransactions (65): the states of transactional ids."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.transaction_requests import require_on_transactional_id
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[DescribeTransactionsRequest], broker: BrokerServices
) -> Message:
    """Describe each id, with those of its topics that the client may know of."""
    return DescribeTransactionsResponse(
        transaction_states=[
            _described(transactional_id, request, broker)
            for transactional_id in request.body.transactional_ids
        ]
    )


def _described(
    transactional_id: str,
    request: IncomingRequest[DescribeTransactionsRequest],
    broker: BrokerServices,
) -> DescribeTransactionsResponse.TransactionState:
    try:
        require_on_transactional_id(request, AclOperation.DESCRIBE, transactional_id)
        state = broker.transaction_coordinator.describe_transaction(transactional_id)
    except RequestError as error:
        return _refusal(transactional_id, error.code)
    allows = request.access.allows_on_topic
    state.topics = [one for one in state.topics if allows(AclOperation.DESCRIBE, one.topic)]
    return state


def _refusal(
    transactional_id: str, code: ErrorCode
) -> DescribeTransactionsResponse.TransactionState:
    return DescribeTransactionsResponse.TransactionState(
        error_code=code, transactional_id=transactional_id
    )


def _refuse(
    request: DescribeTransactionsRequest, error: RequestError, _version: int
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            _refusal(transactional_id, error.code) for transactional_id in request.transactional_ids
        ]
    )


API: Final = BrokerApi(
    request=DescribeTransactionsRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
