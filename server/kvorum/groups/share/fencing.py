"""The session of a member of a share group, and its end: the member leaves, or is not heard of."""

from kvorum.groups.decision import NO_DECISION, Decision
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.group_records import (
    group_epoch_record,
    member_tombstones,
    target_assignment_metadata_record,
)
from kvorum.groups.share_group.member import ShareGroupMember
from kvorum.groups.timeouts import ShareMemberSession, session_timeout_key


def remove_member(shard: ShardState, group: ShareGroup, member: ShareGroupMember) -> Decision:
    """Return the records that end a member; the next heartbeat of another finds a new epoch."""
    group_id = group.group_id
    others = (one for one in group.members.values() if one.member_id != member.member_id)
    topics = frozenset[str]().union(*(one.subscribed_topic_names for one in others))
    metadata_hash = shard.topic_hashes.of_group(topics, shard.image)
    group_epoch = group.epochs().group_epoch + 1
    records = [
        *member_tombstones(group_id, member.member_id),
        group_epoch_record(group_id, group_epoch, metadata_hash),
    ]
    if group.member_count == 1:
        # A group without members needs no target; the next member does not wait for one.
        records.append(target_assignment_metadata_record(group_id, group_epoch, 0))
    shard.outbox.cancel_timer(session_timeout_key(group_id, member.member_id))
    return Decision(tuple(records), replay_records=True)


def fence_share_member(shard: ShardState, timeout: ShareMemberSession) -> Decision:
    """Return the records that end a member which has not been heard of in time."""
    group = shard.find_share_group(timeout.group_id)
    member = None if group is None else group.members.get(timeout.member_id)
    if group is None or member is None:
        return NO_DECISION
    return remove_member(shard, group, member)


def start_session(shard: ShardState, group_id: str, member_id: str) -> None:
    """Begin the session of a member, or begin it again."""
    timeout_ms = shard.share_group_config(group_id).session_timeout_ms
    shard.outbox.set_timer(ShareMemberSession(group_id, member_id), timeout_ms, is_retried=True)


def start_sessions(shard: ShardState, group: ShareGroup) -> None:
    """Begin the sessions of all members again."""
    for member in group.members.values():
        start_session(shard, group.group_id, member.member_id)
