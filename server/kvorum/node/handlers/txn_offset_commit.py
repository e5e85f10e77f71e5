"""TxnOffsetCommit (28): offsets of a group that count once a transaction is committed."""

from collections.abc import Iterable
from typing import Final

from kvorum.broker.add_partitions_to_txn import operation_of_txn_offset_commit
from kvorum.groups.append_errors import append_error_to_transactional_error
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.broker.coordinator.transaction_write import TransactionProducer, TransactionWrite
from kvorum.node.broker.transaction_verification import TransactionalProducer
from kvorum.node.handlers.committed_topics import AnsweredTopic, CommittedTopics, refused_topics
from kvorum.node.handlers.group_requests import asked, context_of, require_on_group
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
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
FIRST_VERSION_WITH_TOPIC_IDS: Final = 6


async def answer(
    request: IncomingRequest[TxnOffsetCommitRequest], broker: BrokerServices
) -> Message:
    """Commit what the client may commit; what is refused before that comes first."""
    body = request.body
    kind = AclResourceType.TRANSACTIONAL_ID
    if not request.access.allows(AclOperation.WRITE, kind, body.transactional_id):
        raise RequestError.with_default_message(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    require_on_group(request, AclOperation.READ, body.group_id)
    has_ids = request.version >= FIRST_VERSION_WITH_TOPIC_IDS
    found: CommittedTopics[TxnOffsetCommitRequestPartition] = CommittedTopics(
        request, body.topics, broker.loader.published.topics, has_ids=has_ids
    )
    if not found.accepted:
        return _response(found.answered)
    wanted = TxnOffsetCommitRequest(
        transactional_id=body.transactional_id,
        group_id=body.group_id,
        producer_id=body.producer_id,
        producer_epoch=body.producer_epoch,
        generation_id_or_member_epoch=body.generation_id_or_member_epoch,
        member_id=body.member_id,
        group_instance_id=body.group_instance_id,
        topics=[
            TxnOffsetCommitRequestTopic(one.name, one.topic_id, one.partitions)
            for one in found.accepted
        ],
    )
    try:
        transaction = await verified_transaction(wanted, request.version, broker)
        response = await asked(
            broker.runtime,
            broker.groups.commit_transactional_offsets,
            context_of(request),
            wanted,
            transaction,
        )
    except RequestError as error:
        response = _refuse(wanted, error, request.version)
    if not found.is_refused:
        # As in Kafka, a topic that the request names twice then stays apart.
        return response
    return _response(found.merge(response.topics))


def _response(topics: Iterable[AnsweredTopic]) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                one.name,
                one.topic_id,
                [TxnOffsetCommitResponsePartition(*each) for each in one.partitions],
            )
            for one in topics
        ]
    )


async def verified_transaction(
    wanted: TxnOffsetCommitRequest, version: int, broker: BrokerServices
) -> TransactionWrite:
    """Verify, or add, the group's partition; raises RequestError where it may not be used."""
    partition = broker.groups.partition_of_transaction(wanted.group_id)
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


def _refuse(
    request: TxnOffsetCommitRequest, error: RequestError, version: int
) -> TxnOffsetCommitResponse:
    code = error.code
    is_loading = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if is_loading and version < FIRST_VERSION_THAT_KNOWS_LOADING:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return _response(refused_topics(request.topics, code))


API: Final = BrokerApi(
    request=TxnOffsetCommitRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
