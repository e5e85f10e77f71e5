"""SyncGroup on classic groups: the leader's assignment, and members that fetch theirs."""

from dataclasses import dataclass

from kvorum.groups.append_errors import append_error_to_response_error
from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.classic_group.group_records import new_group_record
from kvorum.groups.classic_group.state import ClassicGroupState
from kvorum.groups.effects import SyncPromise, sync_key
from kvorum.groups.results import NO_DECISION, Decision
from kvorum.groups.shard_state import ShardState
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


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
    group = shard.groups.get(request.group_id)
    try:
        if group is None or group.is_empty:
            raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID)
        _check(group, request)
        if group.is_in(ClassicGroupState.PREPARING_REBALANCE):
            raise RequestError(ErrorCode.REBALANCE_IN_PROGRESS)
    except RequestError as error:
        shard.outbox.answer_sync(promise, SyncGroupResponse(error_code=error.code))
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
        shard.outbox.answer_sync(promise, response)
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
