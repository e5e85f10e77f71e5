"""The end of the state of share partitions, with their group, their topic, or on request.

A shard writes which topics are to be deleted, and has its caller ask the share coordinator for it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share.state_initialization import named
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.group_records import state_partitions_record
from kvorum.groups.share_group.state_partitions import StatePartitions, StateTopic, combined
from kvorum.metadata.api import RequestError
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest

_NEVER: Final = -1
_TOPIC: Final = DeleteShareGroupStateRequest.DeleteStateData
_PARTITION: Final = DeleteShareGroupStateRequest.PartitionData
GroupDeletion: TypeAlias = DeleteShareGroupStateRequest | ErrorCode
"""The request before a group can be deleted, or the reason why the group cannot."""


@dataclass(frozen=True, slots=True)
class OffsetDeletion:
    """Topics whose state is not to be deleted, with errors, and the request for the others.

    `request` is None where there are no others.
    """

    refused: list[DeleteShareGroupOffsetsResponseTopic] = field(
        default_factory=list[DeleteShareGroupOffsetsResponseTopic]
    )
    request: DeleteShareGroupStateRequest | None = None


def begin_group_deletions(
    shard: ShardState, group_ids: Iterable[str]
) -> tuple[list[CoordinatorRecord], dict[str, GroupDeletion]]:
    """Return the records by which groups lose their states, and what to do for each group.

    Left out are groups of other protocols, and those without a state.
    """
    records: list[CoordinatorRecord] = []
    deletions: dict[str, GroupDeletion] = {}
    for group_id in group_ids:
        group = shard.find_share_group(group_id)
        if group is None:
            continue
        if not group.is_empty:
            deletions[group_id] = ErrorCode.NON_EMPTY_GROUP
            continue
        state = shard.share_state_partitions.get(group_id)
        if state is None:
            continue
        topics = _deletable_topics(shard, state)
        names = {topic_id: topic.name for topic_id, topic in topics.items()}
        records.append(state_partitions_record(group_id, {}, {}, names))
        if topics:
            partitions = [(topic_id, topic.partitions) for topic_id, topic in topics.items()]
            deletions[group_id] = _request(group_id, partitions)
    return records, deletions


def begin_offset_deletion(
    shard: ShardState, request: DeleteShareGroupOffsetsRequest
) -> tuple[list[CoordinatorRecord], OffsetDeletion]:
    """Return the record by which topics lose their state, and what to do for them.

    Raises GROUP_ID_NOT_FOUND, and NON_EMPTY_GROUP for a group with members.
    """
    group_id = request.group_id
    _demand_empty(shard.share_group(group_id))
    state = shard.share_state_partitions.get(group_id)
    if state is None:
        return [], OffsetDeletion()
    initialized = dict(state.initialized)
    deleting = set(state.deleting)
    refused: list[DeleteShareGroupOffsetsResponseTopic] = []
    partitions: list[tuple[bytes, Collection[int]]] = []
    for name in (topic.topic_name for topic in request.topics):
        topic = shard.image.topics.by_name(name)
        if topic is None:
            refused.append(_refusal(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.default_message))
        elif topic.id in initialized:
            partitions.append((topic.id, initialized.pop(topic.id).partitions))
            deleting.add(topic.id)
        elif topic.id in deleting:
            partitions.append((topic.id, range(len(topic.partitions))))
        else:
            refused.append(_refusal(name, "There is no offset information to delete."))
    record = state_partitions_record(
        group_id, state.initializing, initialized, named(shard, deleting)
    )
    if not partitions:
        return [record], OffsetDeletion(refused)
    return [record], OffsetDeletion(refused, _request(group_id, partitions))


def complete_offset_deletion(
    shard: ShardState,
    group_id: str,
    topics: Mapping[bytes, str],
    refused: Collection[DeleteShareGroupOffsetsResponseTopic],
) -> tuple[list[CoordinatorRecord], DeleteShareGroupOffsetsResponse]:
    """Return the record by which topics have no state, and the response; `topics` are names by id.

    Of a group that has gone meanwhile, only the refused topics are in the response.
    """
    state = shard.share_state_partitions.get(group_id)
    if state is None:
        return [], DeleteShareGroupOffsetsResponse(responses=[*refused])
    deleting = named(shard, state.deleting - topics.keys())
    record = state_partitions_record(group_id, state.initializing, state.initialized, deleting)
    deleted = [DeleteShareGroupOffsetsResponseTopic(name, one) for one, name in topics.items()]
    return [record], DeleteShareGroupOffsetsResponse(responses=[*deleted, *refused])


def forget_deleted_topics(
    shard: ShardState, topics: Iterable[TopicImage]
) -> list[CoordinatorRecord]:
    """Return the records by which groups have no state of topics that are gone."""
    gone = {topic.id for topic in topics}
    records: list[CoordinatorRecord] = []
    for group_id, state in shard.share_state_partitions.items():
        known = state.initializing.keys() | state.initialized.keys() | state.deleting
        if gone.isdisjoint(known):
            continue
        records.append(
            state_partitions_record(
                group_id,
                {one: topic for one, topic in state.initializing.items() if one not in gone},
                {one: topic for one, topic in state.initialized.items() if one not in gone},
                named(shard, state.deleting - gone),
            )
        )
    return records


def _deletable_topics(shard: ShardState, state: StatePartitions) -> dict[bytes, StateTopic]:
    """Return all topics of a group with a state; a deletion that has begun begins again."""
    by_id = shard.image.topics.by_id
    again = {
        one: StateTopic(by_id[one].name, frozenset(range(len(by_id[one].partitions))), _NEVER)
        for one in sorted(state.deleting)
        if one in by_id
    }
    return combined(combined(state.initialized, state.initializing), again)


def _demand_empty(group: ShareGroup) -> None:
    if not group.is_empty:
        raise RequestError.with_default_message(ErrorCode.NON_EMPTY_GROUP)


def _request(
    group_id: str, partitions: Iterable[tuple[bytes, Collection[int]]]
) -> DeleteShareGroupStateRequest:
    topics = [
        _TOPIC(topic_id, [_PARTITION(one) for one in sorted(numbers)])
        for topic_id, numbers in partitions
    ]
    return DeleteShareGroupStateRequest(group_id, topics)


def _refusal(name: str, message: str | None) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=message,
    )
