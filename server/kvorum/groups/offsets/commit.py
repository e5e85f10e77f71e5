"""OffsetCommit and TxnOffsetCommit: checks, and the records of what was accepted."""

from typing import Final, TypeAlias

from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.classic_group.state import ClassicGroupState
from kvorum.groups.offsets.offset_and_metadata import NO_EXPIRE_TIMESTAMP, OffsetAndMetadata
from kvorum.groups.records import CoordinatorRecord
from kvorum.groups.settings import RequestContext
from kvorum.groups.shard_state import ShardState
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kvorum.wire.records.record import within_64_bits

_DEFAULT_RETENTION_TIME_MS: Final = -1
_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND: Final = 9
_FIRST_TRANSACTIONAL_VERSION_WITH_GROUP_ID_NOT_FOUND: Final = 6
_UTF_16_UNIT_BYTES: Final = 2
_CommitRequest: TypeAlias = OffsetCommitRequest | TxnOffsetCommitRequest
_CommittedPartition: TypeAlias = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


def commit_offsets(
    shard: ShardState, context: RequestContext, request: OffsetCommitRequest, now_ms: int
) -> tuple[list[CoordinatorRecord], OffsetCommitResponse]:
    """Return the records and the response; a refused group refuses the whole request."""
    is_named = context.version >= _FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
    group = _committing_group(shard, request, now_ms, is_unknown_group_named=is_named)
    if group.is_in(ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE):
        member = group.validated_member(request.member_id, None)
        Rebalance(shard, now_ms).reschedule_heartbeat(group, member)
    expire_timestamp = NO_EXPIRE_TIMESTAMP
    if request.retention_time_ms != _DEFAULT_RETENTION_TIME_MS:
        expire_timestamp = within_64_bits(now_ms + request.retention_time_ms)
    records: list[CoordinatorRecord] = []
    topics: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        answered: list[OffsetCommitResponsePartition] = []
        topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, answered))
        for partition in topic.partitions:
            index = partition.partition_index
            error = _metadata_error(shard, partition.committed_metadata)
            answered.append(OffsetCommitResponsePartition(index, error))
            if error is ErrorCode.NONE:
                offset = _offset(topic.topic_id, partition, now_ms, expire_timestamp)
                records.append(offset.to_record(request.group_id, topic.name, index))
    return records, OffsetCommitResponse(topics=topics)


def commit_transactional_offsets(
    shard: ShardState, context: RequestContext, request: TxnOffsetCommitRequest, now_ms: int
) -> tuple[list[CoordinatorRecord], TxnOffsetCommitResponse]:
    """Return the records, which count when the transaction is committed, and the response."""
    is_named = context.version >= _FIRST_TRANSACTIONAL_VERSION_WITH_GROUP_ID_NOT_FOUND
    _committing_group(shard, request, now_ms, is_unknown_group_named=is_named)
    records: list[CoordinatorRecord] = []
    topics: list[TxnOffsetCommitResponseTopic] = []
    for topic in request.topics:
        answered: list[TxnOffsetCommitResponsePartition] = []
        topics.append(TxnOffsetCommitResponseTopic(topic.name, topic.topic_id, answered))
        for partition in topic.partitions:
            index = partition.partition_index
            error = _metadata_error(shard, partition.committed_metadata)
            answered.append(TxnOffsetCommitResponsePartition(index, error))
            if error is ErrorCode.NONE:
                offset = _offset(topic.topic_id, partition, now_ms, NO_EXPIRE_TIMESTAMP)
                records.append(offset.to_record(request.group_id, topic.name, index))
    return records, TxnOffsetCommitResponse(topics=topics)


def _committing_group(
    shard: ShardState, request: _CommitRequest, now_ms: int, *, is_unknown_group_named: bool
) -> ClassicGroup:
    """Return the group for which the request may commit at this moment; raises RequestError.

    Without a generation, a simple group is made if it does not exist.
    """
    if request.generation_id_or_member_epoch < 0:
        group = shard.get_or_create_group(request.group_id, now_ms)
    elif is_unknown_group_named or shard.groups.get(request.group_id) is not None:
        group = shard.group(request.group_id)
    else:
        raise RequestError(ErrorCode.ILLEGAL_GENERATION)
    check_commit(group, request)
    return group


def check_commit(group: ClassicGroup, request: _CommitRequest) -> None:
    """Refuse a commit of one that may not commit for the group at this moment."""
    generation_id, member_id = request.generation_id_or_member_epoch, request.member_id
    is_transactional = isinstance(request, TxnOffsetCommitRequest)
    if group.is_in(ClassicGroupState.DEAD):
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if generation_id < 0 and group.is_empty:
        # Admin clients, and consumers that manage their partitions themselves.
        return
    if generation_id >= 0 or member_id or request.group_instance_id is not None:
        group.validated_member(member_id, request.group_instance_id)
        if generation_id != group.generation_id:
            raise RequestError(ErrorCode.ILLEGAL_GENERATION)
    elif not is_transactional:
        raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID)
    if not is_transactional and group.is_in(ClassicGroupState.COMPLETING_REBALANCE):
        raise RequestError(ErrorCode.REBALANCE_IN_PROGRESS)


def _metadata_error(shard: ShardState, metadata: str | None) -> ErrorCode:
    units = len((metadata or "").encode("utf-16-be", "surrogatepass")) // _UTF_16_UNIT_BYTES
    is_too_large = units > shard.settings.offset_metadata_max_bytes
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_large else ErrorCode.NONE


def _offset(
    topic_id: bytes, partition: _CommittedPartition, now_ms: int, expire_timestamp: int
) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        committed_offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )
