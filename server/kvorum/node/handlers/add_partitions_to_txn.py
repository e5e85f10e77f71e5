"""AddPartitionsToTxn (24): partitions join a transaction, or are asked about by their leaders.

Producers send the older versions. Brokers send the others, with several transactions: they ask
whether partitions are in one, or add them for producers whose Produce does so (KIP-890).
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, TypeAlias

from kvorum.broker.add_partitions_to_txn import FIRST_VERSION_OF_BROKERS
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

FIRST_VERSION_WITH_FENCED: Final = 2
"""Older clients know PRODUCER_FENCED by the name of INVALID_PRODUCER_EPOCH."""
_Topics: TypeAlias = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
_Codes: TypeAlias = Mapping[TransactionPartition, ErrorCode]
_TopicResults: TypeAlias = list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
_PartitionResult: TypeAlias = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


async def answer(
    request: IncomingRequest[AddPartitionsToTxnRequest], broker: BrokerServices
) -> Message:
    """Add partitions, all or none of each transaction, or report which are in it."""
    body = request.body
    if request.version < FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=await _of_producer(request, broker)
        )
    request.access.require_on_cluster(AclOperation.CLUSTER_ACTION, request=body.NAME)
    topics_of: dict[str, _Topics] = {}
    for transaction in body.transactions:
        # As in Kafka, of two with one id the first one's partitions are answered twice.
        topics_of.setdefault(transaction.transactional_id, transaction.topics)
    asked: list[Coroutine[Wait[Any], Any, _TopicResults]] = [
        _of_leader(transaction, topics_of[transaction.transactional_id], broker)
        for transaction in body.transactions
    ]
    results = await all_of(broker.runtime, asked)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(transaction.transactional_id, each)
            for transaction, each in zip(body.transactions, results, strict=True)
        ]
    )


async def _of_producer(
    request: IncomingRequest[AddPartitionsToTxnRequest], broker: BrokerServices
) -> _TopicResults:
    """Return the results for a producer, whose permissions count."""
    body = request.body
    topics = body.v3_and_below_topics
    require_on_transactional_id(request, AclOperation.WRITE, body.v3_and_below_transactional_id)
    names = (where.topic for where in _partitions(topics) if where.topic not in INTERNAL_TOPICS)
    allowed = request.access.allowed_topics(AclOperation.WRITE, names)
    refused: dict[TransactionPartition, ErrorCode] = {}
    for where in _partitions(topics):
        if where.topic not in allowed:
            refused[where] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not _exists(where, broker):
            refused[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if refused:
        return _refusals(topics, refused)
    wanted = WantedPartitions(
        body.v3_and_below_transactional_id,
        body.v3_and_below_producer_id,
        body.v3_and_below_producer_epoch,
        frozenset(_partitions(topics)),
        client_version=0,
    )
    return _with_one_code(topics, await broker.transaction_coordinator.add_partitions(wanted))


async def _of_leader(
    transaction: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction,
    answered: _Topics,
    broker: BrokerServices,
) -> _TopicResults:
    """Return the results for the leader of a transaction's partitions, or for `answered`."""
    wanted = _partitions(transaction.topics)
    refused = {
        where: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for where in wanted
        if not _exists(where, broker)
    }
    if refused:
        return _refusals(transaction.topics, refused)
    partitions = WantedPartitions(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        frozenset(wanted),
        client_version=EPOCH_OF_EACH_TRANSACTION,
    )
    if transaction.verify_only:
        return _topic_results(_verified(partitions, broker))
    try:
        code = await broker.transaction_coordinator.add_partitions(partitions)
    except RequestError as error:
        code = error.code
    return _with_one_code(answered, code)


def _verified(wanted: WantedPartitions, broker: BrokerServices) -> _Codes:
    try:
        return broker.transaction_coordinator.verify_partitions(wanted)
    except RequestError as error:
        return dict.fromkeys(wanted.partitions, error.code)


def _partitions(topics: _Topics) -> list[TransactionPartition]:
    return [
        TransactionPartition(topic.name, index) for topic in topics for index in topic.partitions
    ]


def _exists(where: TransactionPartition, broker: BrokerServices) -> bool:
    topic = broker.loader.published.topics.by_name(where.topic)
    return topic is not None and where.partition in topic.partitions


def _refusals(topics: _Topics, refused: _Codes) -> _TopicResults:
    """Return the refusals, and that nothing was tried with the other partitions."""
    return _topic_results(
        {
            where: refused.get(where, ErrorCode.OPERATION_NOT_ATTEMPTED)
            for where in _partitions(topics)
        }
    )


def _topic_results(codes: _Codes) -> _TopicResults:
    """Return each topic and partition once."""
    topics: dict[str, list[_PartitionResult]] = {}
    for where, code in codes.items():
        topics.setdefault(where.topic, []).append(_PartitionResult(where.partition, code))
    return [
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name, results)
        for name, results in topics.items()
    ]


def _with_one_code(topics: _Topics, code: ErrorCode) -> _TopicResults:
    """Return the topics as the request has them, with a code for every partition."""
    return [
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
            topic.name, [_PartitionResult(index, code) for index in topic.partitions]
        )
        for topic in topics
    ]


def _refuse(
    request: AddPartitionsToTxnRequest, error: RequestError, version: int
) -> AddPartitionsToTxnResponse:
    if version >= FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnResponse(error_code=error.code)
    code = fenced_code(error.code, is_known=version >= FIRST_VERSION_WITH_FENCED)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_with_one_code(request.v3_and_below_topics, code)
    )


API: Final = BrokerApi(
    request=AddPartitionsToTxnRequest, permission=BY_HANDLER, answer=answer, refuse=_refuse
)
