"""OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete and DeleteGroups; and what expires."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupState
from kvorum.groups.consumer.offset_checks import check_consumer_commit, check_consumer_fetch
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.group_records import group_tombstones
from kvorum.groups.offsets.store import (
    NO_EXPIRE_TIMESTAMP,
    OffsetAndMetadata,
    OffsetStore,
    TopicPartition,
)
from kvorum.groups.records import (
    EXPIRING_OFFSET_COMMIT_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    group_metadata_tombstone,
    offset_commit_tombstone,
)
from kvorum.groups.request_context import RequestContext
from kvorum.groups.shard_state import Group, ShardState
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.group_records import group_tombstones as share_group_tombstones
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_groups import DeleteGroupsResponse
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kvorum.wire.records.record import within_64_bits
from kvorum.wire.uuid_text import ZERO_UUID

_DEFAULT_RETENTION_TIME_MS: Final = -1
_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND: Final = 9
_FIRST_TRANSACTIONAL_VERSION_WITH_GROUP_ID_NOT_FOUND: Final = 6
_UTF_16_UNIT_BYTES: Final = 2
_CommitRequest: TypeAlias = OffsetCommitRequest | TxnOffsetCommitRequest
_CommittedPartition: TypeAlias = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition
INVALID_OFFSET: Final = -1
BaseTimestamp: TypeAlias = Callable[[OffsetAndMetadata], int]
"""From when on the retention of an offset counts."""


def commit_offsets(
    shard: ShardState, context: RequestContext, request: OffsetCommitRequest, now_ms: int
) -> tuple[list[CoordinatorRecord], OffsetCommitResponse]:
    """Return the records and the response; a refused group refuses the whole request."""
    is_named = context.version >= _FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
    group = _committing_group(shard, context, request, now_ms, is_unknown_group_named=is_named)
    if isinstance(group, ClassicGroup) and group.is_in(
        ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE
    ):
        member = group.validated_member(request.member_id, None)
        Rebalance(shard, now_ms).reschedule_heartbeat(group, member)
    expire_timestamp = NO_EXPIRE_TIMESTAMP
    value_version = OFFSET_COMMIT_VALUE_VERSION
    if request.retention_time_ms != _DEFAULT_RETENTION_TIME_MS:
        expire_timestamp = within_64_bits(now_ms + request.retention_time_ms)
        if expire_timestamp != NO_EXPIRE_TIMESTAMP:
            value_version = EXPIRING_OFFSET_COMMIT_VALUE_VERSION
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
                key = OffsetCommitKey(request.group_id, topic.name, index)
                value = _offset_value(topic.topic_id, partition, now_ms)
                value.expire_timestamp = expire_timestamp
                records.append(CoordinatorRecord(key, value, value_version))
    return records, OffsetCommitResponse(topics=topics)


def commit_transactional_offsets(
    shard: ShardState, context: RequestContext, request: TxnOffsetCommitRequest, now_ms: int
) -> tuple[list[CoordinatorRecord], TxnOffsetCommitResponse]:
    """Return the records, which count when the transaction is committed, and the response."""
    is_named = context.version >= _FIRST_TRANSACTIONAL_VERSION_WITH_GROUP_ID_NOT_FOUND
    _committing_group(shard, context, request, now_ms, is_unknown_group_named=is_named)
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
                key = OffsetCommitKey(request.group_id, topic.name, index)
                value = _offset_value(topic.topic_id, partition, now_ms)
                records.append(CoordinatorRecord(key, value, OFFSET_COMMIT_VALUE_VERSION))
    return records, TxnOffsetCommitResponse(topics=topics)


def _committing_group(
    shard: ShardState,
    context: RequestContext,
    request: _CommitRequest,
    now_ms: int,
    *,
    is_unknown_group_named: bool,
) -> Group:
    """Return the group for which the request may commit at this moment; raises RequestError.

    Without a generation, a simple group is made if it does not exist.
    """
    if request.generation_id_or_member_epoch < 0:
        group = shard.get_or_create_group(request.group_id, now_ms)
    elif is_unknown_group_named or shard.groups.get(request.group_id) is not None:
        group = shard.group(request.group_id)
    else:
        raise RequestError(ErrorCode.ILLEGAL_GENERATION)
    if isinstance(group, ShareGroup):
        raise _without_offsets(group)
    if isinstance(group, ClassicGroup):
        check_commit(group, request)
    else:
        check_consumer_commit(group, context.version, request)
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


def _offset_value(
    topic_id: bytes, partition: _CommittedPartition, now_ms: int
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        topic_id=topic_id,
    )


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """A view of the offsets: the newest ones if they have to be stable, else what is committed."""

    offsets: OffsetStore
    require_stable: bool

    @property
    def epoch(self) -> int | None:
        """The epoch that is read."""
        return None if self.require_stable else self.offsets.shard.timeline.committed_offset

    def fetch(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        """Return a group's offsets; of a group that is not known, none and no error."""
        group = self.offsets.shard.groups.get(request.group_id, self.epoch)
        is_dead = isinstance(group, ClassicGroup) and group.is_in(ClassicGroupState.DEAD)
        is_known = group is not None and not is_dead and not isinstance(group, ShareGroup)
        if isinstance(group, ConsumerGroup):
            check_consumer_fetch(group, request, self.epoch)
        if request.topics is None:
            topics = self._all_topics(request.group_id) if is_known else []
            return OffsetFetchResponseGroup(request.group_id, topics)
        topics = [
            OffsetFetchResponseTopics(
                topic.name,
                topic.topic_id,
                [
                    self._partition(
                        request.group_id,
                        TopicPartition(topic.name, partition),
                        topic.topic_id,
                        is_known=is_known,
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
        return OffsetFetchResponseGroup(request.group_id, topics)

    def _all_topics(self, group_id: str) -> list[OffsetFetchResponseTopics]:
        topics = self.offsets.committed.topics(group_id, self.epoch)
        if topics is None:
            return []
        return [
            OffsetFetchResponseTopics(
                topic,
                ZERO_UUID,
                [
                    self._answer(group_id, TopicPartition(topic, partition), offset)
                    for partition, offset in partitions.items(self.epoch)
                ],
            )
            for topic, partitions in topics.items(self.epoch)
        ]

    def _partition(
        self, group_id: str, where: TopicPartition, topic_id: bytes, *, is_known: bool
    ) -> OffsetFetchResponsePartitions:
        offset = self.offsets.committed.get(group_id, where, self.epoch) if is_known else None
        if offset is not None and offset.has_other_topic_id(topic_id):
            offset = None
        return self._answer(group_id, where, offset)

    def _answer(
        self, group_id: str, where: TopicPartition, offset: OffsetAndMetadata | None
    ) -> OffsetFetchResponsePartitions:
        is_unstable = self.require_stable and self.offsets.pending.has(group_id, where)
        if offset is None or is_unstable:
            return OffsetFetchResponsePartitions(
                partition_index=where.partition,
                committed_offset=INVALID_OFFSET,
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT if is_unstable else ErrorCode.NONE,
            )
        return OffsetFetchResponsePartitions(
            partition_index=where.partition,
            committed_offset=offset.committed_offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )


def delete_offsets(
    offsets: OffsetStore, request: OffsetDeleteRequest
) -> tuple[list[CoordinatorRecord], OffsetDeleteResponse]:
    """Return tombstones for offsets of topics that no member consumes, and the response."""
    group = offsets.shard.group(request.group_id)
    _refuse_dead(group)
    if isinstance(group, ShareGroup):
        raise _without_offsets(group)
    is_of_consumers = isinstance(group, ConsumerGroup) or group.uses_consumer_group_protocol
    if not group.is_empty and not is_of_consumers:
        raise RequestError(ErrorCode.NON_EMPTY_GROUP)
    records: list[CoordinatorRecord] = []
    topics: list[OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        is_subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
        indexes = [partition.partition_index for partition in topic.partitions]
        answered = [OffsetDeleteResponsePartition(index, error) for index in indexes]
        topics.append(OffsetDeleteResponseTopic(topic.name, answered))
        if not is_subscribed:
            records += [
                offset_commit_tombstone(request.group_id, *where)
                for where in (TopicPartition(topic.name, index) for index in indexes)
                if _is_there(offsets, request.group_id, where)
            ]
    return records, OffsetDeleteResponse(topics=topics)


def delete_groups(
    offsets: OffsetStore, group_ids: Iterable[str]
) -> tuple[list[CoordinatorRecord], list[DeleteGroupsResponse.DeletableGroupResult]]:
    """Return tombstones of empty groups and of all their offsets, and a result for each group."""
    records: list[CoordinatorRecord] = []
    results: list[DeleteGroupsResponse.DeletableGroupResult] = []
    for group_id in group_ids:
        try:
            offsets.shard.demand_served(group_id)
            group = offsets.shard.group(group_id)
            _refuse_dead(group)
            if not group.is_empty:
                raise RequestError(ErrorCode.NON_EMPTY_GROUP)
            records += offsets.tombstones(group_id)
            records += _group_tombstones(group)
            error = ErrorCode.NONE
        except RequestError as refusal:
            error = refusal.code
        results.append(DeleteGroupsResponse.DeletableGroupResult(group_id, error))
    return records, results


def cleanup_group_metadata(offsets: OffsetStore, now_ms: int) -> list[CoordinatorRecord]:
    """Return tombstones of offsets that have expired, and of groups that have none left."""
    records: list[CoordinatorRecord] = []
    for group_id, group in offsets.shard.groups.items():
        if isinstance(group, ShareGroup):
            # A share group ends on request only.
            continue
        expired, has_others = _expired_offsets(offsets, group, now_ms)
        records += [offset_commit_tombstone(group_id, *where) for where in expired]
        if not has_others and not offsets.pending.has_group(group_id) and group.is_empty:
            records += _group_tombstones(group)
    return records


def _group_tombstones(group: Group) -> list[CoordinatorRecord]:
    if isinstance(group, ShareGroup):
        return share_group_tombstones(group)
    if isinstance(group, ConsumerGroup):
        return group_tombstones(group)
    return [group_metadata_tombstone(group.group_id)]


def _expired_offsets(
    offsets: OffsetStore, group: ClassicGroup | ConsumerGroup, now_ms: int
) -> tuple[list[TopicPartition], bool]:
    """Return where offsets have expired, and whether the group has others."""
    entries = offsets.committed.entries(group.group_id)
    base = _expiration_base(group)
    if base is None:
        return [], bool(entries)
    retention_ms = offsets.shard.settings.offsets_retention_ms
    expired = [
        where
        for where, offset in entries
        if not group.is_subscribed_to(where.topic)
        and offset.is_expired(base(offset), now_ms, retention_ms)
        and not offsets.pending.has(group.group_id, where)
    ]
    return expired, len(expired) < len(entries)


def _expiration_base(group: ClassicGroup | ConsumerGroup) -> BaseTimestamp | None:
    """Return from when on offsets grow old; None while they do not (KIP-211, KIP-496)."""
    if isinstance(group, ConsumerGroup) or group.protocol_type is None:
        return _commit_timestamp
    if group.is_empty:
        stamp = group.current_state_timestamp
        # Old records have no time at which the group became empty.
        return _commit_timestamp if stamp is None else lambda _: stamp
    is_stable = group.is_in(ClassicGroupState.STABLE)
    if group.uses_consumer_group_protocol and group.subscribed_topics is not None and is_stable:
        return _commit_timestamp
    return None


def _commit_timestamp(offset: OffsetAndMetadata) -> int:
    return offset.commit_timestamp


def _is_there(offsets: OffsetStore, group_id: str, where: TopicPartition) -> bool:
    is_committed = offsets.committed.get(group_id, where) is not None
    return is_committed or offsets.pending.has(group_id, where)


def _refuse_dead(group: Group) -> None:
    if isinstance(group, ClassicGroup) and group.is_in(ClassicGroupState.DEAD):
        raise RequestError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is in dead state."
        )


def _without_offsets(group: ShareGroup) -> RequestError:
    """Return the refusal of a request for committed offsets, of which a share group has none."""
    return RequestError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group."
    )
