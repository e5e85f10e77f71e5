"""The end of a member of a consumer group: it leaves, or it has not been heard of in time."""

from collections import Counter
from collections.abc import Sequence

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.consumer.downgrade import downgrade_without, is_downgraded_without
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.group_records import (
    group_epoch_record,
    member_tombstones,
    regex_tombstone,
    target_assignment_metadata_record,
)
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.decision import NO_DECISION, Decision
from kvorum.groups.modern_group.member_state import MemberState
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import (
    ClassicMemberJoin,
    ClassicMemberSync,
    MemberRebalance,
    MemberSession,
    member_join_key,
    member_sync_key,
    rebalance_timeout_key,
    session_timeout_key,
)
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode


def remove_members(
    shard: ShardState, group: ConsumerGroup, members: Sequence[ConsumerGroupMember], now_ms: int
) -> Decision:
    """Return the records that end members; the next heartbeat of another finds a new epoch.

    A group in which only members of the classic protocol remain becomes a classic one, if it may.
    """
    group_id, gone = group.group_id, {member.member_id for member in members}
    if is_downgraded_without(shard, group, members):
        return Decision(tuple(downgrade_without(shard, group, members, now_ms)))
    records: list[CoordinatorRecord] = []
    for member in members:
        records += member_tombstones(group_id, member.member_id)
        cancel_timers(shard, group_id, member.member_id)
    leaving = Counter(member.subscribed_topic_regex for member in members)
    records += [
        regex_tombstone(group_id, regex)
        for regex, count in leaving.items()
        if regex and group.regex_subscriber_count(regex) == count
    ]
    others = (one for one in group.members.values() if one.member_id not in gone)
    topics = frozenset[str]().union(*map(group.subscribed_topics_of, others))
    metadata_hash = shard.topic_hashes.of_group(topics, shard.image)
    group_epoch = group.epochs().group_epoch + 1
    records.append(group_epoch_record(group_id, group_epoch, metadata_hash))
    if group.member_count == len(members):
        # A group without members needs no target; the next member does not wait for one.
        records.append(target_assignment_metadata_record(group_id, group_epoch, 0))
    return Decision(tuple(records), replay_records=True)


def start_timers(shard: ShardState, group: ConsumerGroup) -> None:
    """Begin the sessions of all members again, and the time of those who have to give up.

    A member of the classic protocol has the group's session until it is heard of, as in Kafka.
    """
    group_id, timeout_ms = group.group_id, shard.group_config(group.group_id).session_timeout_ms
    for member in group.members.values():
        session = MemberSession(group_id, member.member_id)
        shard.outbox.set_timer(session, timeout_ms, is_retried=True)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            rebalance = MemberRebalance(group_id, member.member_id, member.member_epoch)
            shard.outbox.set_timer(rebalance, member.rebalance_timeout_ms, is_retried=True)


def cancel_timers(shard: ShardState, group_id: str, member_id: str) -> None:
    """Cancel the timers of a member."""
    shard.outbox.cancel_timer(session_timeout_key(group_id, member_id))
    shard.outbox.cancel_timer(rebalance_timeout_key(group_id, member_id))
    shard.outbox.cancel_timer(member_join_key(group_id, member_id))
    shard.outbox.cancel_timer(member_sync_key(group_id, member_id))


def fence_member(
    shard: ShardState,
    timeout: MemberSession | MemberRebalance | ClassicMemberJoin | ClassicMemberSync,
    now_ms: int,
) -> Decision:
    """Return the records that fence a member which has not done in time what the timeout is for."""
    group = shard.find_consumer_group(timeout.group_id)
    member = None if group is None else group.members.get(timeout.member_id)
    if group is None or member is None:
        return NO_DECISION
    if isinstance(timeout, MemberRebalance) and member.member_epoch != timeout.member_epoch:
        return NO_DECISION
    try:
        return remove_members(shard, group, [member], now_ms)
    except RequestError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        # The group cannot become a classic one. Kafka takes this for a group that is gone.
        return NO_DECISION
