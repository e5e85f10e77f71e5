"""AlterShareGroupOffsets: the start offsets of an empty share group, or of a new one."""

from dataclasses import dataclass

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.modern_group.group import FIRST_EPOCH
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share.state_initialization import initialize_request, initializing_record
from kvorum.groups.share_group.state_partitions import StateTopic
from kvorum.metadata.api import RequestError
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest

_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """The response, if all states can be initialized at the offsets of the request."""

    response: AlterShareGroupOffsetsResponse
    initialize: InitializeShareGroupStateRequest


def alter_share_group_offsets(
    shard: ShardState, request: AlterShareGroupOffsetsRequest, now_ms: int
) -> tuple[list[CoordinatorRecord], OffsetChange]:
    """Return the record by which partitions wait for their new state, and the answer.

    Raises GROUP_ID_NOT_FOUND for a group of another protocol, and NON_EMPTY_GROUP for one with
    members. Unknown topics and partitions have an error of their own.
    """
    group_id = request.group_id
    group_epoch = _epoch_of_empty_group(shard, group_id)
    answered: list[AlterShareGroupOffsetsResponseTopic] = []
    initializing: dict[bytes, StateTopic] = {}
    offsets: dict[bytes, dict[int, int]] = {}
    for topic in request.topics:
        found = shard.image.topics.by_name(topic.topic_name)
        wanted = {one.partition_index: one.start_offset for one in topic.partitions}
        known = {one: offset for one, offset in wanted.items() if _has_partition(found, one)}
        partitions = [
            AlterShareGroupOffsetsResponsePartition(one.partition_index)
            if one.partition_index in known
            else _unknown_partition(one.partition_index)
            for one in topic.partitions
        ]
        response_topic = AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name, partitions=partitions
        )
        answered.append(response_topic)
        if found is not None:
            response_topic.topic_id = found.id
            initializing[found.id] = StateTopic(topic.topic_name, frozenset(known), now_ms)
            if known:
                offsets.setdefault(found.id, {}).update(known)
    records = [initializing_record(shard, group_id, initializing)] if initializing else []
    response = AlterShareGroupOffsetsResponse(responses=answered)
    return records, OffsetChange(response, initialize_request(group_id, group_epoch, offsets))


def _epoch_of_empty_group(shard: ShardState, group_id: str) -> int:
    if shard.groups.get(group_id) is None:
        return FIRST_EPOCH
    group = shard.share_group(group_id)
    if not group.is_empty:
        raise RequestError.with_default_message(ErrorCode.NON_EMPTY_GROUP)
    return group.epochs().group_epoch


def _has_partition(topic: TopicImage | None, index: int) -> bool:
    return topic is not None and index < len(topic.partitions)


def _unknown_partition(index: int) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(index, _UNKNOWN, _UNKNOWN.default_message)
