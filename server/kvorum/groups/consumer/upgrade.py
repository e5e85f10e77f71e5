"""The online upgrade of a classic group with members to a consumer group (KIP-848).

It comes with the first heartbeat of a member of the consumer protocol. The classic members stay,
each with what it owns, and are asked to join again.
"""

from typing import Final

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.member_target import as_iterated
from kvorum.groups.assignors.name_order import names_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.consumer_protocol import (
    MalformedProtocolError,
    assignment_of,
    subscription_of,
)
from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupMember
from kvorum.groups.consumer_group.group import NOT_OWNED, ConsumerGroup
from kvorum.groups.consumer_group.group_records import group_records
from kvorum.groups.consumer_group.member import ClassicMemberMetadata, ConsumerGroupMember
from kvorum.groups.records import group_metadata_tombstone
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import MemberSession
from kvorum.metadata.api import RequestError
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.error_codes import ErrorCode

_NOT_COMPUTED: Final = 0
"""The time of a target that the group has not computed itself: the next one does not wait."""


def upgrade(
    shard: ShardState, classic: ClassicGroup, now_ms: int, records: list[CoordinatorRecord]
) -> ConsumerGroup:
    """Return a classic group as a consumer group, and add the records by which it becomes one.

    Raises GROUP_ID_NOT_FOUND where the broker's policy or the members do not allow it. Members that
    wait in a join or a sync may have been asked by then to join again.
    """
    _demand_allowed(shard, classic)
    rebalance = Rebalance(shard, now_ms)
    rebalance.answer_waiting_joins(classic, ErrorCode.REBALANCE_IN_PROGRESS)
    rebalance.answer_waiting_syncs(classic, ErrorCode.REBALANCE_IN_PROGRESS)
    try:
        group = _consumer_group(shard, classic)
    except MalformedProtocolError as error:
        raise _refusal(classic, "because the embedded consumer protocol is malformed.") from error
    records.append(group_metadata_tombstone(classic.group_id))
    records += group_records(group)
    for member in group.members.values():
        assert member.classic_metadata is not None
        session = MemberSession(group.group_id, member.member_id)
        timeout_ms = member.classic_metadata.session_timeout_ms
        shard.outbox.set_timer(session, timeout_ms, is_retried=True)
    return group


def _demand_allowed(shard: ShardState, classic: ClassicGroup) -> None:
    if not shard.settings.consumer.migration_policy.allows_upgrade:
        raise _refusal(classic, "because online upgrade is disabled.")
    if not classic.uses_consumer_group_protocol:
        raise _refusal(classic, "because the group does not use the consumer embedded protocol.")
    if len(classic.members) > shard.settings.consumer.max_size:
        raise _refusal(classic, "because the group size exceeds the consumer group maximum size.")


def _consumer_group(shard: ShardState, classic: ClassicGroup) -> ConsumerGroup:
    """Return the group, which is not yet among those of the shard: its records put it there."""
    generation = classic.generation_id
    group = ConsumerGroup(classic.group_id, shard.timeline)
    for classic_member in classic.members.values():
        assigned = _assigned(classic, classic_member, shard.image.topics)
        member = _member(classic, classic_member, assigned)
        _demand_free(group, assigned)
        group.target_assignment.set(member.member_id, assigned)
        group.set_member(member)
    group.set_assignment_epoch(generation, _NOT_COMPUTED)
    topics = group.name_subscriber_counts()
    group.set_group_epoch(generation, shard.topic_hashes.of_group(topics, shard.image))
    return group


def _assigned(classic: ClassicGroup, member: ClassicGroupMember, topics: TopicsImage) -> Assignment:
    """Return what a member owns; it has no bytes where there are more members than partitions."""
    if not member.assignment:
        return {}
    assignment = assignment_of(member.assignment)
    if assignment.user_data:
        raise _refusal(
            classic,
            "because an unsupported custom assignor is in use. Please refer to the documentation "
            "or switch to a default assignor before re-attempting the upgrade.",
        )
    return as_iterated(
        {
            topics.ids[one.topic]: OrderedSet(one.partitions)
            for one in assignment.assigned_partitions
            if one.topic in topics.ids
        }
    )


def _member(
    classic: ClassicGroup, member: ClassicGroupMember, assigned: Assignment
) -> ConsumerGroupMember:
    generation = classic.generation_id
    subscription = subscription_of(member.metadata(classic.protocol_name))
    return ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=OrderedSet(names_in_order(subscription.topics)),
        classic_metadata=ClassicMemberMetadata(
            member.session_timeout_ms, member.supported_protocols
        ),
        member_epoch=generation,
        previous_member_epoch=generation,
        assigned={
            topic_id: dict.fromkeys(partitions, generation)
            for topic_id, partitions in assigned.items()
        },
    )


def _demand_free(group: ConsumerGroup, assigned: Assignment) -> None:
    """Refuse a group of which two members own one partition, as an assignor of theirs may do."""
    is_free = all(
        group.owner_epoch(topic_id, partition) == NOT_OWNED
        for topic_id, partitions in assigned.items()
        for partition in partitions
    )
    if not is_free:
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)


def _refusal(classic: ClassicGroup, reason: str) -> RequestError:
    return RequestError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group {reason}",
    )
