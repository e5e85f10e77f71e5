"""AddOffsetsToTxn (25): a group's partition of ``__consumer_offsets`` joins a transaction."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.handlers.group_requests import require_on_group
from kvorum.node.handlers.transaction_requests import fenced_code, require_on_transactional_id
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.transactions.add_partitions import WantedPartitions
from kvorum.transactions.transaction_metadata import TransactionPartition
from kvorum.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_FENCED: Final = 2
"""Older clients know PRODUCER_FENCED by the name of INVALID_PRODUCER_EPOCH."""


async def answer(
    request: IncomingRequest[AddOffsetsToTxnRequest], broker: BrokerServices
) -> Message:
    """Add the partition; the group need not exist."""
    body = request.body
    partition = broker.groups.runtime.partition_for(body.group_id)
    require_on_transactional_id(request, AclOperation.WRITE, body.transactional_id)
    require_on_group(request, AclOperation.READ, body.group_id)
    code = await broker.transaction_coordinator.add_partitions(
        WantedPartitions(
            body.transactional_id,
            body.producer_id,
            body.producer_epoch,
            frozenset([TransactionPartition(GROUP_METADATA_TOPIC, partition)]),
            client_version=0,
        )
    )
    return AddOffsetsToTxnResponse(error_code=code)


def _refuse(
    _request: AddOffsetsToTxnRequest, error: RequestError, version: int
) -> AddOffsetsToTxnResponse:
    code = fenced_code(error.code, is_known=version >= FIRST_VERSION_WITH_FENCED)
    return AddOffsetsToTxnResponse(error_code=code)


API: Final = BrokerApi(
    request=AddOffsetsToTxnRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
