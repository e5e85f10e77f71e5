"""Rebalances of classic groups: the join phase, the sync phase, and what ends them."""

from dataclasses import dataclass

from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupMember, ClassicGroupState
from kvorum.groups.classic_group.group_records import new_group_record
from kvorum.groups.decision import NO_DECISION, Decision
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import (
    InitialJoinPhase,
    JoinPhase,
    MemberHeartbeat,
    SyncPhase,
    heartbeat_key,
    join_key,
    sync_key,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.messages.sync_group import SyncGroupResponse

_EMPTY = ClassicGroupState.EMPTY
_PREPARING = ClassicGroupState.PREPARING_REBALANCE
_COMPLETING = ClassicGroupState.COMPLETING_REBALANCE
_STABLE = ClassicGroupState.STABLE


@dataclass(frozen=True, slots=True)
class Rebalance:
    """The steps that move a group from one generation to the next, at a time of day."""

    shard: ShardState
    now_ms: int

    def maybe_prepare_or_complete_join(self, group: ClassicGroup) -> Decision:
        """Begin a rebalance, or end the join phase of the present one if none is missing."""
        return self.prepare(group) if group.can_rebalance else self.maybe_complete_join(group)

    def prepare(self, group: ClassicGroup) -> Decision:
        """Begin a rebalance; the first one of a group waits for more members to come."""
        if group.is_in(_COMPLETING):
            self.reset_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync_members.clear()
        self.shard.outbox.cancel_timer(sync_key(group.group_id))
        is_initial = group.is_empty
        if is_initial:
            delay_ms = self.shard.settings.group_initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            timeout = InitialJoinPhase(group.group_id, delay_ms, remaining_ms)
            self.shard.outbox.set_timer(timeout, delay_ms)
        group.transition_to(_PREPARING, self.now_ms)
        if is_initial:
            return NO_DECISION
        if group.has_all_members_joined:
            return self.complete_join(group)
        self._await_joins(group)
        return NO_DECISION

    def maybe_complete_join(self, group: ClassicGroup) -> Decision:
        """End the join phase if all have joined; a first rebalance only ends by its timer."""
        if not group.is_in(_PREPARING) or group.previous_state is _EMPTY:
            return NO_DECISION
        return self.complete_join(group) if group.has_all_members_joined else NO_DECISION

    def complete_join(self, group: ClassicGroup) -> Decision:
        """End the join phase with those who have joined, and static members who have not."""
        self.shard.outbox.cancel_timer(join_key(group.group_id))
        for member in group.members.values():
            if member.awaiting_join is None and not member.is_static:
                self._remove(group, member.member_id)
        if group.is_in(ClassicGroupState.DEAD):
            return NO_DECISION
        if not group.maybe_elect_new_joined_leader() and len(group.members):
            self._await_joins(group)
            return NO_DECISION
        group.init_next_generation(self.now_ms)
        if group.is_empty:
            # If it cannot be appended, it is written again with the next generation.
            return Decision((new_group_record(group, {}),))
        for member in group.members.values():
            self.answer_join(group, member, group.join_response(member.member_id))
            self.reschedule_heartbeat(group, member)
            member.is_new = False
            group.pending_sync_members.add(member.member_id)
        timeout = SyncPhase(group.group_id, group.generation_id)
        self.shard.outbox.set_timer(timeout, group.rebalance_timeout_ms)
        return NO_DECISION

    def on_initial_join_phase(self, timeout: InitialJoinPhase) -> Decision:
        """Wait again if a member has come meanwhile, as long as its rebalance timeout allows."""
        group = self.shard.find_classic_group(timeout.group_id)
        if group is None:
            return NO_DECISION
        if not group.new_member_added or timeout.remaining_ms == 0:
            return self.complete_join(group)
        group.new_member_added = False
        delay_ms = min(self.shard.settings.group_initial_rebalance_delay_ms, timeout.remaining_ms)
        remaining_ms = max(timeout.remaining_ms - timeout.delay_ms, 0)
        self.shard.outbox.set_timer(
            InitialJoinPhase(group.group_id, delay_ms, remaining_ms), delay_ms
        )
        return NO_DECISION

    def on_join_phase(self, timeout: JoinPhase) -> Decision:
        """End the join phase with the members that are there."""
        group = self.shard.find_classic_group(timeout.group_id)
        return NO_DECISION if group is None else self.complete_join(group)

    def on_sync_phase(self, timeout: SyncPhase) -> Decision:
        """Remove members that did not sync in time, and begin again without them."""
        group = self.shard.find_classic_group(timeout.group_id)
        if group is None or timeout.generation_id != group.generation_id:
            return NO_DECISION
        if not group.is_in(_COMPLETING, _STABLE) or not group.pending_sync_members:
            return NO_DECISION
        for member_id in sorted(group.pending_sync_members):
            self._remove(group, member_id)
        return self.prepare(group)

    def on_member_heartbeat(self, timeout: MemberHeartbeat) -> Decision:
        """Remove a member whose session is over, unless it waits for an answer of ours."""
        group = self.shard.find_classic_group(timeout.group_id)
        if group is None or group.is_in(ClassicGroupState.DEAD):
            return NO_DECISION
        member = group.members.get(timeout.member_id)
        if timeout.member_id in group.pending_join_members:
            group.remove(timeout.member_id)
        elif member is None or member.has_satisfied_heartbeat:
            return NO_DECISION
        else:
            self.remove_member(group, member)
            if group.is_in(_STABLE, _COMPLETING):
                return self.maybe_prepare_or_complete_join(group)
        if group.is_in(_PREPARING) and group.has_all_members_joined:
            return self.complete_join(group)
        return NO_DECISION

    def remove_member(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """Remove a member, whose waiting join is answered that it is not known."""
        self.answer_join(group, member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)

    def answer_join(
        self, group: ClassicGroup, member: ClassicGroupMember, response: JoinGroupResponse
    ) -> None:
        """Answer the join of a member that waits for it."""
        if member.awaiting_join is not None:
            self.shard.outbox.answer_join(member.awaiting_join, response)
            group.set_awaiting_join(member, None)

    def answer_waiting_joins(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Answer all members that wait in a join with an error."""
        for member in group.members.values():
            response = JoinGroupResponse(error_code=error, member_id=member.member_id)
            self.answer_join(group, member, response)

    def answer_waiting_syncs(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Answer all members that wait in a sync with an error."""
        for member in group.members.values():
            if member.awaiting_sync is not None:
                answer = SyncGroupResponse(error_code=error)
                self.shard.outbox.answer(member.awaiting_sync, answer)
                member.awaiting_sync = None

    def reschedule_heartbeat(
        self, group: ClassicGroup, member: ClassicGroupMember, delay_ms: int | None = None
    ) -> None:
        """Begin a member's session again, or give it another time."""
        timeout = MemberHeartbeat(group.group_id, member.member_id)
        session_ms = member.session_timeout_ms if delay_ms is None else delay_ms
        self.shard.outbox.set_timer(timeout, session_ms)

    def reset_assignment(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Forget all assignments, and answer members that wait for theirs with an error."""
        for member in group.members.values():
            member.assignment = b""
        self.propagate_assignment(group, error)

    def propagate_assignment(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Answer each member that waits in a sync with its assignment, or with an error."""
        is_success = error is ErrorCode.NONE
        for member in group.members.values():
            if member.awaiting_sync is None:
                continue
            response = SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if is_success else None,
                protocol_name=group.protocol_name if is_success else None,
                assignment=member.assignment,
            )
            self.shard.outbox.answer(member.awaiting_sync, response)
            member.awaiting_sync = None
            self.reschedule_heartbeat(group, member)

    def _await_joins(self, group: ClassicGroup) -> None:
        self.shard.outbox.set_timer(JoinPhase(group.group_id), group.rebalance_timeout_ms)

    def _remove(self, group: ClassicGroup, member_id: str) -> None:
        group.remove(member_id)
        self.shard.outbox.cancel_timer(heartbeat_key(group.group_id, member_id))
