"""A static member that comes back without its member id (KIP-345)."""

from dataclasses import dataclass
from typing import Final

from kvorum.groups.append_errors import append_error_to_response_error
from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.classic_group.member import ClassicGroupMember
from kvorum.groups.effects import JoinPromise
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.messages.sync_group import SyncGroupResponse

_FIRST_VERSION_WITH_SKIP_ASSIGNMENT: Final = 9


@dataclass(frozen=True, slots=True)
class StaticRejoinAppend:
    """The append of the record with a replaced member; when it fails, the old one is back."""

    rebalance: Rebalance
    group: ClassicGroup
    version: int
    group_instance_id: str
    promise: JoinPromise
    leader: str | None
    """The member that led before the replacement."""
    old: ClassicGroupMember
    new: ClassicGroupMember

    def completed(self, _: int) -> None:
        """Answer with the current generation.

        A leader learns that it leads only in versions that can have it skip the assignment: in
        older ones, the id of the old leader keeps it from assigning again (KIP-814).
        """
        group = self.group
        may_skip = self.version >= _FIRST_VERSION_WITH_SKIP_ASSIGNMENT
        is_leader = may_skip and group.is_leader(self.new.member_id)
        if self.new.awaiting_join is None:
            return
        response = JoinGroupResponse(
            members=group.current_members() if is_leader else [],
            member_id=self.new.member_id,
            generation_id=group.generation_id,
            protocol_name=group.protocol_name,
            protocol_type=group.protocol_type,
            leader=(group.leader_id if may_skip else self.leader) or "",
            skip_assignment=is_leader,
        )
        self.rebalance.answer_join(group, self.new, response)

    def failed(self, error: ErrorCode, _: int) -> None:
        """Put the old member back with its protocols and timeouts, and answer with the error."""
        group = self.group
        group.update_member(
            self.new,
            protocols=self.old.supported_protocols,
            rebalance_timeout_ms=self.old.rebalance_timeout_ms,
            session_timeout_ms=self.old.session_timeout_ms,
            promise=None,
        )
        if self.new.member_id not in group.members:
            # It left meanwhile. Kafka's callback fails here, and the join is never answered.
            return
        restored = replace_static_member(
            self.rebalance, group, self.group_instance_id, self.new, self.old.member_id
        )
        self.rebalance.reschedule_heartbeat(group, restored)
        response = JoinGroupResponse(
            error_code=append_error_to_response_error(error),
            generation_id=group.generation_id,
            protocol_name=group.protocol_name,
            protocol_type=group.protocol_type,
            leader=self.leader or "",
        )
        self.rebalance.shard.outbox.answer_join(self.promise, response)


def replace_static_member(
    rebalance: Rebalance,
    group: ClassicGroup,
    group_instance_id: str,
    old: ClassicGroupMember,
    new_member_id: str,
) -> ClassicGroupMember:
    """Return the member in another's place; what that one waited for is answered as fenced."""
    fenced = ErrorCode.FENCED_INSTANCE_ID
    response = JoinGroupResponse(error_code=fenced, member_id=old.member_id)
    rebalance.answer_join(group, old, response)
    if old.awaiting_sync is not None:
        rebalance.shard.outbox.answer_sync(old.awaiting_sync, SyncGroupResponse(error_code=fenced))
        old.awaiting_sync = None
    return group.replace_static_member(group_instance_id, old, new_member_id)
