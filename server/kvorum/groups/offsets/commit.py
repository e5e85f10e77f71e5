"""OffsetCommit and TxnOffsetCommit: checks, and the records of what was accepted."""

from typing import Final

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
    OffsetCommitRequestTopic,
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


def commit_offsets(
    shard: ShardState, context: RequestContext, request: OffsetCommitRequest, now_ms: int
) -> tuple[list[CoordinatorRecord], OffsetCommitResponse]:
    """Return the records and the response; a refused group refuses the whole request."""
    _check_commit(shard, context, request, now_ms)
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
                offset = _offset(topic, partition, now_ms, expire_timestamp)
                records.append(offset.to_record(request.group_id, topic.name, index))
    return records, OffsetCommitResponse(topics=topics)


def commit_transactional_offsets(
    shard: ShardState, context: RequestContext, request: TxnOffsetCommitRequest, now_ms: int
) -> tuple[list[CoordinatorRecord], TxnOffsetCommitResponse]:
    """Return the records, which count when the transaction is committed, and the response."""
    generation_id = request.generation_id_or_member_epoch
    group = _group_to_commit(shard, request.group_id, generation_id, now_ms)
    if group is None:
        if context.version >= _FIRST_TRANSACTIONAL_VERSION_WITH_GROUP_ID_NOT_FOUND:
            shard.group(request.group_id)
        raise RequestError(ErrorCode.ILLEGAL_GENERATION)
    check_commit(
        group,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=generation_id,
        is_transactional=True,
    )
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
                offset = _transactional_offset(topic.topic_id, partition, now_ms)
                records.append(offset.to_record(request.group_id, topic.name, index))
    return records, TxnOffsetCommitResponse(topics=topics)


def check_commit(
    group: ClassicGroup,
    *,
    member_id: str,
    group_instance_id: str | None,
    generation_id: int,
    is_transactional: bool,
) -> None:
    """Refuse a commit of one that may not commit for the group at this moment."""
    if group.is_in(ClassicGroupState.DEAD):
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if generation_id < 0 and group.is_empty:
        # Admin clients, and consumers that manage their partitions themselves.
        return
    if generation_id >= 0 or member_id or group_instance_id is not None:
        group.validated_member(member_id, group_instance_id)
        if generation_id != group.generation_id:
            raise RequestError(ErrorCode.ILLEGAL_GENERATION)
    elif not is_transactional:
        raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID)
    if not is_transactional and group.is_in(ClassicGroupState.COMPLETING_REBALANCE):
        raise RequestError(ErrorCode.REBALANCE_IN_PROGRESS)


def _check_commit(
    shard: ShardState, context: RequestContext, request: OffsetCommitRequest, now_ms: int
) -> None:
    generation_id = request.generation_id_or_member_epoch
    group = _group_to_commit(shard, request.group_id, generation_id, now_ms)
    if group is None:
        if context.version >= _FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
            shard.group(request.group_id)
        raise RequestError(ErrorCode.ILLEGAL_GENERATION)
    check_commit(
        group,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=generation_id,
        is_transactional=False,
    )
    if group.is_in(ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE):
        member = group.validated_member(request.member_id, None)
        Rebalance(shard, now_ms).reschedule_heartbeat(group, member)


def _group_to_commit(
    shard: ShardState, group_id: str, generation_id: int, now_ms: int
) -> ClassicGroup | None:
    """Return the group; without a generation, a simple one is made if it does not exist."""
    if generation_id < 0:
        return shard.get_or_create_group(group_id, now_ms)
    return shard.groups.get(group_id)


def _metadata_error(shard: ShardState, metadata: str | None) -> ErrorCode:
    units = len((metadata or "").encode("utf-16-be", "surrogatepass")) // _UTF_16_UNIT_BYTES
    is_too_large = units > shard.settings.offset_metadata_max_bytes
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_large else ErrorCode.NONE


def _offset(
    topic: OffsetCommitRequestTopic,
    partition: OffsetCommitRequestPartition,
    now_ms: int,
    expire_timestamp: int,
) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        committed_offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expire_timestamp,
        topic_id=topic.topic_id,
    )


def _transactional_offset(
    topic_id: bytes, partition: TxnOffsetCommitRequestPartition, now_ms: int
) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        committed_offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        topic_id=topic_id,
    )
