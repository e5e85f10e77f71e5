"""AddPartitionsToTxn (24): partitions join a transaction, or are asked about by their leaders.

Producers send the older versions. Brokers send the others, with several transactions: they ask
whether partitions are in one, or add them for producers whose Produce does so (KIP-890).
"""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import BY_HANDLER, RequestError
from kvorum.metadata.topic_names import INTERNAL_TOPICS
from kvorum.node.coroutines import Wait, all_of
from kvorum.node.handlers.transaction_requests import fenced_code, require_on_transactional_id
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.transactions.add_partitions import WantedPartitions
from kvorum.transactions.transaction_metadata import EPOCH_OF_EACH_TRANSACTION, TransactionPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kvorum.wire.primitives import Message

FIRST_VERSION_OF_BROKERS: Final = 4
FIRST_VERSION_WITH_FENCED: Final = 2
"""Older clients know PRODUCER_FENCED by the name of INVALID_PRODUCER_EPOCH."""
_Topics: TypeAlias = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
_Codes: TypeAlias = Mapping[TransactionPartition, ErrorCode]


async def answer(
    request: IncomingRequest[AddPartitionsToTxnRequest], broker: BrokerServices
) -> Message:
    """Add partitions, all or none of each transaction, or tell which are in it."""
    body = request.body
    if request.version < FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_topic_results(await _of_producer(request, broker))
        )
    request.access.require_on_cluster(AclOperation.CLUSTER_ACTION, request=body.NAME)
    asked: list[Coroutine[Wait[Any], Any, _Codes]] = [
        _of_leader(transaction, broker) for transaction in body.transactions
    ]
    codes = await all_of(broker.runtime, asked)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transaction.transactional_id, _topic_results(each)
            )
            for transaction, each in zip(body.transactions, codes, strict=True)
        ]
    )


async def _of_producer(
    request: IncomingRequest[AddPartitionsToTxnRequest], broker: BrokerServices
) -> _Codes:
    """Return the codes for a producer, whose permissions count."""
    body = request.body
    require_on_transactional_id(request, AclOperation.WRITE, body.v3_and_below_transactional_id)
    wanted = _partitions(body.v3_and_below_topics)
    refused: dict[TransactionPartition, ErrorCode] = {}
    for where in wanted:
        is_allowed = request.access.allows_on_topic(AclOperation.WRITE, where.topic)
        if where.topic in INTERNAL_TOPICS or not is_allowed:
            refused[where] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not _exists(where, broker):
            refused[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if refused:
        return _with_others(wanted, refused)
    partitions = WantedPartitions(
        body.v3_and_below_transactional_id,
        body.v3_and_below_producer_id,
        body.v3_and_below_producer_epoch,
        frozenset(wanted),
        client_version=0,
    )
    return dict.fromkeys(wanted, await broker.transaction_coordinator.add_partitions(partitions))


async def _of_leader(
    transaction: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction, broker: BrokerServices
) -> _Codes:
    """Return the codes for the leader of a transaction's partitions."""
    wanted = _partitions(transaction.topics)
    refused = {
        where: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for where in wanted
        if not _exists(where, broker)
    }
    if refused:
        return _with_others(wanted, refused)
    partitions = WantedPartitions(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        frozenset(wanted),
        client_version=EPOCH_OF_EACH_TRANSACTION,
    )
    coordinator = broker.transaction_coordinator
    try:
        if transaction.verify_only:
            return coordinator.verify_partitions(partitions)
        return dict.fromkeys(wanted, await coordinator.add_partitions(partitions))
    except RequestError as error:
        return dict.fromkeys(wanted, error.code)


def _partitions(topics: _Topics) -> list[TransactionPartition]:
    return [
        TransactionPartition(topic.name, index) for topic in topics for index in topic.partitions
    ]


def _exists(where: TransactionPartition, broker: BrokerServices) -> bool:
    topic = broker.loader.published.topics.by_name(where.topic)
    return topic is not None and where.partition in topic.partitions


def _with_others(
    wanted: Iterable[TransactionPartition], refused: _Codes
) -> dict[TransactionPartition, ErrorCode]:
    """Return the refusals, and that nothing was tried with the other partitions."""
    return {where: refused.get(where, ErrorCode.OPERATION_NOT_ATTEMPTED) for where in wanted}


def _topic_results(
    codes: _Codes,
) -> list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]] = {}
    for where, code in codes.items():
        result = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(where.partition, code)
        topics.setdefault(where.topic, []).append(result)
    return [
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name, results)
        for name, results in topics.items()
    ]


def _refuse(
    request: AddPartitionsToTxnRequest, error: RequestError, version: int
) -> AddPartitionsToTxnResponse:
    if version >= FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnResponse(error_code=error.code)
    code = fenced_code(error.code, is_known=version >= FIRST_VERSION_WITH_FENCED)
    codes = dict.fromkeys(_partitions(request.v3_and_below_topics), code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topic_results(codes))


API: Final = BrokerApi(
    request=AddPartitionsToTxnRequest, permission=BY_HANDLER, answer=answer, refuse=_refuse
)
