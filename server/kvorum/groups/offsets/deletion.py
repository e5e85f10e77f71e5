"""OffsetDelete, DeleteGroups, and the expiry of offsets and groups."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.classic_group.state import ClassicGroupState
from kvorum.groups.offsets.offset_and_metadata import OffsetAndMetadata
from kvorum.groups.offsets.offset_table import TopicPartition
from kvorum.groups.offsets.store import OffsetStore
from kvorum.groups.records import (
    CoordinatorRecord,
    group_metadata_tombstone,
    offset_commit_tombstone,
)
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_groups import DeleteGroupsResponse
from kvorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

BaseTimestamp: TypeAlias = Callable[[OffsetAndMetadata], int]
"""From when on the retention of an offset counts."""


def delete_offsets(
    offsets: OffsetStore, request: OffsetDeleteRequest
) -> tuple[list[CoordinatorRecord], OffsetDeleteResponse]:
    """Return tombstones for offsets of topics that no member consumes, and the response."""
    group = offsets.shard.group(request.group_id)
    _refuse_dead(group)
    if not group.is_empty and not group.uses_consumer_group_protocol:
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
            places = (TopicPartition(topic.name, index) for index in indexes)
            records += [
                offset_commit_tombstone(request.group_id, *where)
                for where in places
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
            group = offsets.shard.group(group_id)
            _refuse_dead(group)
            if not group.is_empty:
                raise RequestError(ErrorCode.NON_EMPTY_GROUP)
            records += offsets.tombstones(group_id)
            records.append(group_metadata_tombstone(group_id))
            error = ErrorCode.NONE
        except RequestError as refusal:
            error = refusal.code
        results.append(DeleteGroupsResponse.DeletableGroupResult(group_id, error))
    return records, results


def cleanup_group_metadata(offsets: OffsetStore, now_ms: int) -> list[CoordinatorRecord]:
    """Return tombstones of offsets that have expired, and of groups that have none left."""
    records: list[CoordinatorRecord] = []
    for group_id, group in offsets.shard.groups.items():
        expired, has_others = _expired_offsets(offsets, group, now_ms)
        records += [offset_commit_tombstone(group_id, *where) for where in expired]
        if not has_others and not offsets.pending.has_group(group_id) and group.is_empty:
            records.append(group_metadata_tombstone(group_id))
    return records


def _expired_offsets(
    offsets: OffsetStore, group: ClassicGroup, now_ms: int
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


def _expiration_base(group: ClassicGroup) -> BaseTimestamp | None:
    """Return from when on offsets grow old; None while they do not (KIP-211, KIP-496)."""
    if group.protocol_type is None:
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


def _refuse_dead(group: ClassicGroup) -> None:
    if group.is_in(ClassicGroupState.DEAD):
        raise RequestError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is in dead state."
        )
