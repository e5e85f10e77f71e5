"""EndTxn (26): a producer commits or aborts its transaction."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.transaction_requests import fenced_code, require_on_transactional_id
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.transactions.end_transaction import WantedEnd
from kvorum.transactions.transaction_metadata import EPOCH_OF_EACH_TRANSACTION
from kvorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_FENCED: Final = 2
"""Older clients know PRODUCER_FENCED by the name of INVALID_PRODUCER_EPOCH."""
FIRST_VERSION_WITH_NEXT_EPOCH: Final = 5
"""The version of clients whose transactions have an epoch each."""
NO_EPOCH: Final = -1


async def answer(request: IncomingRequest[EndTxnRequest], broker: BrokerServices) -> Message:
    """Decide the outcome; the markers come after the response."""
    body = request.body
    require_on_transactional_id(request, AclOperation.WRITE, body.transactional_id)
    has_next_epoch = request.version >= FIRST_VERSION_WITH_NEXT_EPOCH
    return await broker.transaction_coordinator.end_transaction(
        WantedEnd(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            is_commit=body.committed,
            client_version=EPOCH_OF_EACH_TRANSACTION if has_next_epoch else 0,
        )
    )


def _refuse(_request: EndTxnRequest, error: RequestError, version: int) -> EndTxnResponse:
    code = fenced_code(error.code, is_known=version >= FIRST_VERSION_WITH_FENCED)
    return EndTxnResponse(error_code=code, producer_epoch=NO_EPOCH)


API: Final = BrokerApi(
    request=EndTxnRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
