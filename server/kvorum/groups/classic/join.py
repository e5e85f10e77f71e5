"""JoinGroup and SyncGroup on classic groups: new, returning and static members (KIP-345)."""

from dataclasses import dataclass, replace
from typing import Final

from kvorum.coordinator.append_errors import append_error_to_response_error
from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupMember, ClassicGroupState
from kvorum.groups.classic_group.group_records import new_empty_group_record, new_group_record
from kvorum.groups.classic_group.supported_protocol import supported_protocols
from kvorum.groups.consumer_group.group_records import group_tombstones
from kvorum.groups.decision import NO_DECISION, Decision
from kvorum.groups.join_versions import UNKNOWN_MEMBER_ID, needs_member_id, rebalance_timeout_ms
from kvorum.groups.promises import JoinPromise, SyncPromise
from kvorum.groups.request_context import RequestContext
from kvorum.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import MemberHeartbeat, sync_key
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

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
        rebalance.shard.outbox.answer(old.awaiting_sync, SyncGroupResponse(error_code=fenced))
        old.awaiting_sync = None
    return group.replace_static_member(group_instance_id, old, new_member_id)


@dataclass(frozen=True, slots=True)
class Join:
    """One JoinGroup request, and the group that it is for."""

    shard: ShardState
    rebalance: Rebalance
    context: RequestContext
    request: JoinGroupRequest
    promise: JoinPromise
    group: ClassicGroup

    def decide(self) -> Decision:
        """Answer the request, or have it wait in a join phase."""
        member_id = self.request.member_id
        if not self._is_accepted():
            self.group.remove(member_id)
            self._refuse(UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
            return NO_DECISION
        if self.group.is_in(ClassicGroupState.DEAD):
            self._refuse(member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not self.group.supports_protocols(
            self.request.protocol_type, [one.name for one in self.request.protocols]
        ):
            self._refuse(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif member_id == UNKNOWN_MEMBER_ID:
            return self._join_new_member()
        elif member_id in self.group.pending_join_members:
            if self.request.group_instance_id is not None:
                raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add_member(member_id)
        else:
            return self._join_existing_member()
        return NO_DECISION

    def _is_accepted(self) -> bool:
        group = self.group
        size_max = self.shard.settings.group_max_size
        member = group.members.get(self.request.member_id)
        if group.is_in(ClassicGroupState.PREPARING_REBALANCE):
            is_awaiting = member is not None and member.awaiting_join is not None
            return is_awaiting or group.awaiting_join_count < size_max
        if group.is_in(ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE):
            return member is not None or len(group.members) < size_max
        return True

    def _join_new_member(self) -> Decision:
        instance_id = self.request.group_instance_id
        prefix = self.context.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{self.shard.new_uuid()}"
        if instance_id is not None:
            existing = self.group.static_members.get(instance_id)
            if existing is None:
                return self._add_member(member_id)
            return self._rejoin(instance_id, existing, member_id)
        if not needs_member_id(self.context.version, self.request):
            return self._add_member(member_id)
        self.group.pending_join_members.add(member_id)
        self.shard.outbox.set_timer(
            MemberHeartbeat(self.group.group_id, member_id), self.request.session_timeout_ms
        )
        self._refuse(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        return NO_DECISION

    def _rejoin(self, instance_id: str, old_member_id: str, new_member_id: str) -> Decision:
        """Replace a static member; a stable group goes on if it keeps its protocol (KIP-345)."""
        group, version = self.group, self.context.version
        leader = group.leader_id
        old = group.members.get(old_member_id)
        if old is None:
            raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        new = replace_static_member(self.rebalance, group, instance_id, old, new_member_id)
        self.rebalance.reschedule_heartbeat(group, new)
        append = StaticRejoinAppend(
            self.rebalance, group, version, instance_id, self.promise, leader, old, new
        )
        self._update(new)
        if group.is_in(ClassicGroupState.STABLE):
            if (group.protocol_name or "") != group.select_protocol():
                return self.rebalance.maybe_prepare_or_complete_join(group)
            assignment = {one.member_id: one.assignment for one in group.members.values()}
            return Decision((new_group_record(group, assignment),), append)
        if group.is_in(ClassicGroupState.COMPLETING_REBALANCE):
            return self.rebalance.prepare(group)
        if not group.is_in(ClassicGroupState.PREPARING_REBALANCE):
            raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return self.rebalance.maybe_complete_join(group)

    def _join_existing_member(self) -> Decision:
        group = self.group
        member_id = self.request.member_id
        try:
            member = group.validated_member(member_id, self.request.group_instance_id)
        except RequestError as error:
            self._refuse(member_id, error.code)
            return NO_DECISION
        is_unchanged = member.supported_protocols == supported_protocols(self.request)
        if group.is_empty:
            self._refuse(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        elif self._is_for_current_generation(member_id, is_unchanged=is_unchanged):
            self.shard.outbox.answer_join(self.promise, group.join_response(member_id))
        else:
            self._update(member)
            return self.rebalance.maybe_prepare_or_complete_join(group)
        return NO_DECISION

    def _is_for_current_generation(self, member_id: str, *, is_unchanged: bool) -> bool:
        """Whether a member missed the answer; a leader of a stable group wants a new one."""
        if self.group.is_in(ClassicGroupState.COMPLETING_REBALANCE):
            return is_unchanged
        is_stable = self.group.is_in(ClassicGroupState.STABLE)
        return is_stable and is_unchanged and not self.group.is_leader(member_id)

    def _add_member(self, member_id: str) -> Decision:
        member = ClassicGroupMember(
            member_id=member_id,
            group_instance_id=self.request.group_instance_id,
            client_id=self.context.client_id,
            client_host=self.context.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms(self.context.version, self.request),
            session_timeout_ms=self.request.session_timeout_ms,
            protocol_type=self.request.protocol_type,
            supported_protocols=supported_protocols(self.request),
            is_new=True,
        )
        group = self.group
        is_preparing = group.is_in(ClassicGroupState.PREPARING_REBALANCE)
        if is_preparing and group.previous_state is ClassicGroupState.EMPTY:
            group.new_member_added = True
        group.add(member, self.promise)
        self.rebalance.reschedule_heartbeat(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return self.rebalance.maybe_prepare_or_complete_join(group)

    def _update(self, member: ClassicGroupMember) -> None:
        self.group.update_member(
            member,
            protocols=supported_protocols(self.request),
            rebalance_timeout_ms=rebalance_timeout_ms(self.context.version, self.request),
            session_timeout_ms=self.request.session_timeout_ms,
            promise=self.promise,
        )

    def _refuse(self, member_id: str, error: ErrorCode) -> None:
        response = JoinGroupResponse(error_code=error, member_id=member_id)
        self.shard.outbox.answer_join(self.promise, response)


@dataclass(frozen=True, slots=True)
class NewGroupAppend:
    """The append of the record by which a group begins: without it the group is gone."""

    shard: ShardState
    promise: JoinPromise

    def completed(self, _: int) -> None:
        """Do nothing: the join is answered by its phase."""

    def failed(self, error: ErrorCode, _: int) -> None:
        """Answer the join, if it still waits, with what went wrong."""
        response = JoinGroupResponse(error_code=append_error_to_response_error(error))
        self.shard.outbox.answer_join(self.promise, response)


def join_group(
    shard: ShardState,
    context: RequestContext,
    request: JoinGroupRequest,
    promise: JoinPromise,
    now_ms: int,
) -> Decision:
    """Decide on a JoinGroup request; a group is made for a member without an id.

    A consumer group of this name, which has no members, ends; a share group stays.
    """
    if shard.find_share_group(request.group_id) is not None:
        response = JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        shard.outbox.answer_join(promise, response)
        return NO_DECISION
    tombstones: list[CoordinatorRecord] = []
    consumer_group = shard.find_consumer_group(request.group_id)
    if consumer_group is not None:
        tombstones = group_tombstones(consumer_group)
        shard.groups.remove(request.group_id)
    group = shard.find_classic_group(request.group_id)
    is_new_group = group is None
    if is_new_group and request.member_id != UNKNOWN_MEMBER_ID:
        response = JoinGroupResponse(
            error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=request.member_id
        )
        shard.outbox.answer_join(promise, response)
        return NO_DECISION
    if group is None:
        group = shard.create_classic_group(request.group_id, now_ms)
    decision = Join(shard, Rebalance(shard, now_ms), context, request, promise, group).decide()
    if is_new_group and decision is NO_DECISION:
        # Also after a refusal: the group is there, and this is how it goes again.
        first = new_empty_group_record(group)
        return Decision((*tombstones, first), NewGroupAppend(shard, promise))
    return replace(decision, records=(*tombstones, *decision.records)) if tombstones else decision


@dataclass(frozen=True, slots=True)
class AssignmentAppend:
    """The append of a generation with its assignment: it makes the group stable."""

    shard: ShardState
    group: ClassicGroup
    generation_id: int
    assignment: dict[str, bytes]

    def completed(self, now_ms: int) -> None:
        """Give each member its assignment, unless another rebalance has begun."""
        group = self.group
        if not self._is_current():
            return
        for member in group.members.values():
            member.assignment = self.assignment.get(member.member_id, b"")
        Rebalance(self.shard, now_ms).propagate_assignment(group, ErrorCode.NONE)
        group.transition_to(ClassicGroupState.STABLE, now_ms)

    def failed(self, error: ErrorCode, now_ms: int) -> None:
        """Begin the rebalance again, unless another one has begun."""
        if self._is_current():
            rebalance = Rebalance(self.shard, now_ms)
            rebalance.reset_assignment(self.group, append_error_to_response_error(error))
            rebalance.maybe_prepare_or_complete_join(self.group)

    def _is_current(self) -> bool:
        is_completing = self.group.is_in(ClassicGroupState.COMPLETING_REBALANCE)
        return is_completing and self.generation_id == self.group.generation_id


def sync_group(shard: ShardState, request: SyncGroupRequest, promise: SyncPromise) -> Decision:
    """Decide on a SyncGroup request; the one of the leader writes the group."""
    group = shard.find_classic_group(request.group_id)
    try:
        if group is None or group.is_empty:
            raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID)
        _check(group, request)
        if group.is_in(ClassicGroupState.PREPARING_REBALANCE):
            raise RequestError(ErrorCode.REBALANCE_IN_PROGRESS)
    except RequestError as error:
        shard.outbox.answer(promise, SyncGroupResponse(error_code=error.code))
        return NO_DECISION
    member = group.validated_member(request.member_id, request.group_instance_id)
    group.pending_sync_members.discard(member.member_id)
    if not group.pending_sync_members:
        shard.outbox.cancel_timer(sync_key(group.group_id))
    if group.is_in(ClassicGroupState.STABLE):
        response = SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
        shard.outbox.answer(promise, response)
        return NO_DECISION
    member.awaiting_sync = promise
    if not group.is_leader(member.member_id):
        return NO_DECISION
    assignment = dict.fromkeys(group.members.keys(), b"")
    assignment.update((one.member_id, bytes(one.assignment)) for one in request.assignments)
    append = AssignmentAppend(shard, group, request.generation_id, assignment)
    return Decision((new_group_record(group, assignment),), append)


def _check(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.is_in(ClassicGroupState.DEAD):
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.validated_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise RequestError(ErrorCode.ILLEGAL_GENERATION)
    if _differ(request.protocol_type, group.protocol_type) or _differ(
        request.protocol_name, group.protocol_name
    ):
        raise RequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differ(given: str | None, known: str | None) -> bool:
    """Return whether both are there and not the same; older versions give neither."""
    return given is not None and known is not None and given != known
