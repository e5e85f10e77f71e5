"""TxnOffsetCommit (28): offsets of a group that count once a transaction is committed."""

from __future__ import annotations

from typing import Final

from kvorum.broker.add_partitions_to_txn import operation_of_txn_offset_commit
from kvorum.groups.append_errors import append_error_to_transactional_error
from kvorum.groups.record_batches import TransactionProducer
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.group_coordinator.coordinator_partition_writer import TransactionWrite
from kvorum.node.broker.transaction_verification import TransactionalProducer
from kvorum.node.handlers.group_requests import asked, require_on_group
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kvorum.wire.primitives import Message
from kvorum.wire.records.batch import NO_SEQUENCE

FIRST_VERSION_THAT_KNOWS_LOADING: Final = 2
"""Older clients may fail upon COORDINATOR_LOAD_IN_PROGRESS."""


async def answer(
    request: IncomingRequest[TxnOffsetCommitRequest], broker: BrokerServices
) -> Message:
    """Commit what the client may commit; what is refused before that comes first."""
    body = request.body
    kind = AclResourceType.TRANSACTIONAL_ID
    if not request.access.allows(AclOperation.WRITE, kind, body.transactional_id):
        raise RequestError.with_default_message(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    require_on_group(request, AclOperation.READ, body.group_id)
    refused: dict[str, TxnOffsetCommitResponseTopic] = {}
    topics = broker.loader.published.topics
    accepted = [one for topic in body.topics if (one := _accepted(topic, request, topics, refused))]
    if not accepted:
        return TxnOffsetCommitResponse(topics=list(refused.values()))
    wanted = TxnOffsetCommitRequest(
        transactional_id=body.transactional_id,
        group_id=body.group_id,
        producer_id=body.producer_id,
        producer_epoch=body.producer_epoch,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        topics=accepted,
    )
    try:
        transaction = await verified_transaction(wanted, request.version, broker)
        response = await asked(broker.groups.commit_transactional_offsets, wanted, transaction)
    except RequestError as error:
        response = _refuse(wanted, error, request.version)
    if not refused:
        # As in Kafka, a topic that the request names twice then stays apart.
        return response
    for topic in response.topics:
        _add(topic, refused)
    return TxnOffsetCommitResponse(topics=list(refused.values()))


async def verified_transaction(
    wanted: TxnOffsetCommitRequest, version: int, broker: BrokerServices
) -> TransactionWrite:
    """Verify, or add, the group's partition; raises RequestError where it may not be used."""
    partition = broker.groups.partition_of_transaction(wanted.group_id)
    if not broker.transactions.is_coordinated:
        raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    producer = TransactionProducer(wanted.producer_id, wanted.producer_epoch)
    verified = await broker.transactions.verify(
        TransactionalProducer(
            wanted.transactional_id, *producer, operation_of_txn_offset_commit(version)
        ),
        {partition: NO_SEQUENCE},
    )
    code = verified.errors.get(partition.topic_partition)
    if code is not None:
        raise RequestError.with_default_message(append_error_to_transactional_error(code))
    return TransactionWrite(producer, verified.append_to(partition.topic_partition))


def _accepted(
    topic: TxnOffsetCommitRequestTopic,
    request: IncomingRequest[TxnOffsetCommitRequest],
    topics: TopicsImage,
    refused: dict[str, TxnOffsetCommitResponseTopic],
) -> TxnOffsetCommitRequestTopic | None:
    """Return the part of a topic that the coordinator has to see, None for nothing."""
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = topics.by_name(topic.name)
    if not request.access.allows_on_topic(AclOperation.READ, topic.name):
        code, found = ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    known: list[TxnOffsetCommitRequestPartition] = []
    answered: list[TxnOffsetCommitResponsePartition] = []
    for one in topic.partitions:
        if found is not None and found.partitions.get(one.partition_index) is not None:
            known.append(one)
        else:
            answered.append(TxnOffsetCommitResponsePartition(one.partition_index, code))
    if answered:
        _add(TxnOffsetCommitResponseTopic(topic.name, answered), refused)
    return TxnOffsetCommitRequestTopic(topic.name, known) if known else None


def _add(
    topic: TxnOffsetCommitResponseTopic, topics: dict[str, TxnOffsetCommitResponseTopic]
) -> None:
    known = topics.setdefault(topic.name, topic)
    if known is not topic:
        known.partitions += topic.partitions


def _refuse(
    request: TxnOffsetCommitRequest, error: RequestError, version: int
) -> TxnOffsetCommitResponse:
    """Refuse every partition."""
    code = error.code
    is_loading = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if is_loading and version < FIRST_VERSION_THAT_KNOWS_LOADING:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(partition.partition_index, code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


API: Final = BrokerApi(
    key=ApiKey.TXN_OFFSET_COMMIT,
    request=TxnOffsetCommitRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
