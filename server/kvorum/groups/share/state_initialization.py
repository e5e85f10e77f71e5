"""The way of partitions to an initialized state, without which no member of a group gets them.

A shard writes which partitions are to be initialized, and has its caller ask the share coordinator
for it. The caller then tells the shard which ones are initialized, or are not.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share_group.group_records import state_partitions_record
from kvorum.groups.share_group.state_partitions import (
    UNKNOWN_TOPIC,
    Partitions,
    StatePartitions,
    StateTopic,
    StateTopics,
    combined,
)
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest

UNSET_OFFSET: Final = -1
"""The start offset of new topics: the group's configuration decides where it begins."""
FIRST_OFFSET: Final = 0
"""The start offset of partitions that a known topic has got: none of their records is left out."""
_TOPIC: Final = InitializeShareGroupStateRequest.InitializeStateData
_PARTITION: Final = InitializeShareGroupStateRequest.PartitionData


def initialize_new_partitions(
    shard: ShardState,
    group_id: str,
    group_epoch: int,
    names: Collection[str],
    now_ms: int,
    records: list[CoordinatorRecord],
) -> InitializeShareGroupStateRequest | None:
    """Return the request for partitions of topics that have no state yet, and add their record.

    None where all have one, or have been waiting for it for a short time only.
    """
    state = shard.share_state_partitions.get(group_id) or StatePartitions()
    topics = _uninitialized(shard, state, names, now_ms)
    if not topics:
        return None
    records.append(initializing_record(shard, group_id, topics))
    known = state.initialized.keys() | state.initializing.keys()
    offsets = {
        topic_id: dict.fromkeys(
            sorted(topic.partitions), FIRST_OFFSET if topic_id in known else UNSET_OFFSET
        )
        for topic_id, topic in topics.items()
    }
    return initialize_request(group_id, group_epoch, offsets)


def initialize_request(
    group_id: str, group_epoch: int, offsets: Mapping[bytes, Mapping[int, int]]
) -> InitializeShareGroupStateRequest:
    """Return the request that begins states at offsets, by topic id and partition."""
    topics = [
        _TOPIC(
            topic_id,
            [_PARTITION(number, group_epoch, offset) for number, offset in of_topic.items()],
        )
        for topic_id, of_topic in offsets.items()
    ]
    return InitializeShareGroupStateRequest(group_id, topics)


def initializing_record(shard: ShardState, group_id: str, topics: StateTopics) -> CoordinatorRecord:
    """Return the record by which partitions wait for their state, also where it was deleted."""
    state = shard.share_state_partitions.get(group_id) or StatePartitions()
    initializing = combined(state.initializing, topics)
    deleting = named(shard, state.deleting - initializing.keys())
    return state_partitions_record(group_id, initializing, state.initialized, deleting)


def partitions_initialized(
    shard: ShardState, group_id: str, partitions: Partitions, now_ms: int
) -> tuple[CoordinatorRecord, ...]:
    """Return the record by which partitions have a state."""
    if not partitions:
        return ()
    if shard.find_share_group(group_id) is None:
        # The group was deleted meanwhile, which Kafka takes for an error of its own.
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    state = shard.share_state_partitions.get(group_id) or StatePartitions()
    names = named(shard, partitions)
    topics = {
        topic_id: StateTopic(names[topic_id], frozenset(numbers), now_ms)
        for topic_id, numbers in partitions.items()
    }
    initializing = _without(state.initializing, partitions)
    initialized = combined(state.initialized, topics)
    deleting = named(shard, state.deleting)
    return (state_partitions_record(group_id, initializing, initialized, deleting),)


def partitions_not_initialized(
    shard: ShardState, group_id: str, partitions: Partitions
) -> tuple[CoordinatorRecord, ...]:
    """Return the record by which partitions do not wait for a state any more."""
    state = shard.share_state_partitions.get(group_id)
    if state is None or not state.initializing or not partitions:
        return ()
    initializing = _without(state.initializing, partitions)
    deleting = named(shard, state.deleting)
    return (state_partitions_record(group_id, initializing, state.initialized, deleting),)


def named(shard: ShardState, topic_ids: Iterable[bytes]) -> dict[bytes, str]:
    """Return the names of topics by their ids, a mark for those that are gone."""
    topics = shard.image.topics.by_id
    return {one: topics[one].name if one in topics else UNKNOWN_TOPIC for one in sorted(topic_ids)}


def _uninitialized(
    shard: ShardState, state: StatePartitions, names: Iterable[str], now_ms: int
) -> dict[bytes, StateTopic]:
    """Return the partitions of existing topics whose state was not asked for recently."""
    retry_ms = shard.settings.share.initialize_retry_interval_ms
    waiting = {
        topic_id: topic
        for topic_id, topic in state.initializing.items()
        if now_ms - topic.timestamp_ms < retry_ms
    }
    settled = combined(state.initialized, waiting)
    found: dict[bytes, StateTopic] = {}
    for topic in filter(None, map(shard.image.topics.by_name, sorted(names))):
        known = settled.get(topic.id)
        settled_numbers = frozenset[int]() if known is None else known.partitions
        if len(settled_numbers) < len(topic.partitions) or not settled_numbers:
            numbers = frozenset(range(len(topic.partitions))) - settled_numbers
            found[topic.id] = StateTopic(topic.name, numbers, now_ms)
    return found


def _without(topics: StateTopics, partitions: Partitions) -> dict[bytes, StateTopic]:
    """Return topics without some partitions, and without those that lose all of theirs."""
    kept = {
        topic_id: topic.without(partitions.get(topic_id, ())) for topic_id, topic in topics.items()
    }
    return {
        topic_id: topic
        for topic_id, topic in kept.items()
        if topic.partitions or topic_id not in partitions
    }
