"""Requests about groups as a simulated broker answers them, by the real coordinator."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.coordinator.record_batches import TransactionProducer
from kvorum.groups.request_context import RequestContext
from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.writer import TransactionWrite
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.handlers import (
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    sync_group,
    txn_offset_commit,
)
from kvorum.node.services import BrokerApi
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.group_ledger import GroupLedger
from kvorum.simulation.partitions.groups import code_of
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.process import Process
from kvorum.simulation.partitions.settings import OFFSETS_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.offset_commit import OffsetCommitRequest
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kvorum.wire.primitives import Message

_APIS: Final[Mapping[type[Message], BrokerApi[Any]]] = {
    api.request: api
    for api in (
        heartbeat.API,
        join_group.API,
        leave_group.API,
        offset_commit.API,
        sync_group.API,
        txn_offset_commit.API,
    )
}
_KNOWN_CODES: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
"""The codes that clients of groups know, and that they get here."""


class GroupHandler:
    """Answers of one process."""

    def __init__(
        self,
        service: GroupCoordinatorService,
        replicas: ReplicaManager,
        around: Surroundings,
        process: Process,
    ) -> None:
        self._service = service
        self._replicas = replicas
        self._around = around
        self._process = process

    def handle(self, request: Message, reply: Reply, version: int) -> None:
        """Answer now, or when a commit is committed or the other members have come."""
        asked_ms = self._around.now_ms

        def then(result: Message | RequestError) -> None:
            if isinstance(result, RequestError):
                result = _api_of(request).refuse(request, result, version)
            self._in_own_event(partial(self._check, request, result, asked_ms))
            reply(result)

        try:
            self._ask(request, RequestContext(version, "client", "/127.0.0.1"), then)
        except RequestError as error:
            then(error)

    def _ask(self, request: Message, context: RequestContext, then: Callable[[Any], None]) -> None:
        service, now_ms = self._service, self._around.now_ms
        match request:
            case OffsetCommitRequest():
                service.commit_offsets(context, request, then)
            case TxnOffsetCommitRequest():
                producer = TransactionProducer(request.producer_id, request.producer_epoch)
                transaction = TransactionWrite(producer)
                service.commit_transactional_offsets(context, request, transaction, then)
            case JoinGroupRequest():
                self._group(request.group_id).on_join(request, now_ms)
                then = self._in_time(request.group_id, ("join", request.member_id), then)
                service.join_group(context, request, then)
            case SyncGroupRequest():
                then = self._in_time(request.group_id, ("sync", request.member_id), then)
                service.sync_group(request, then)
            case HeartbeatRequest():
                service.heartbeat(request, then)
            case LeaveGroupRequest():
                (member,) = request.members
                group = self._group(request.group_id)
                group.on_leave(member.member_id, member.group_instance_id, now_ms)
                service.leave_group(request, then)
            case _:
                raise TypeError(f"nobody sends {type(request).__name__} to a broker")

    def mark(
        self, index: int, marker: TransactionMarker, done: Callable[[ErrorCode], None]
    ) -> None:
        """Write the marker that ends a transaction with offsets."""

        def then(result: RequestError | None) -> None:
            done(ErrorCode.NONE if result is None else result.code)

        try:
            self._service.complete_transaction(index, marker, then)
        except RequestError as error:
            then(error)

    def fetch(self, request: OffsetFetchRequest, reply: Reply) -> None:
        """Answer with offsets; what the present coordinator answers is checked."""
        (group,) = request.groups
        ledger = self._group(group.group_id)
        open_before = ledger.open_partitions()

        def then(result: OffsetFetchResponseGroup | RequestError) -> None:
            if isinstance(result, RequestError):
                result = OffsetFetchResponseGroup(group_id=group.group_id, error_code=result.code)
            elif self._is_present_coordinator():
                unstable = frozenset[int]()
                if request.require_stable:
                    unstable = open_before & ledger.open_partitions()
                    self._around.checks.held(promises.STABLE_OFFSETS)
                self._in_own_event(partial(self._check_offsets, result, unstable))
            reply(OffsetFetchResponse(groups=[result]))

        try:
            if request.require_stable:
                self._service.fetch_stable_offsets(group, then)
            else:
                then(self._service.fetch_offsets(group))
        except RequestError as error:
            then(error)

    def _check_offsets(self, answer: OffsetFetchResponseGroup, unstable: frozenset[int]) -> None:
        group = self._group(answer.group_id)
        for partition in (one for topic in answer.topics for one in topic.partitions):
            index, offset = partition.partition_index, partition.committed_offset
            message = f"group {answer.group_id}, partition {index}: {offset} "
            message += f"at broker {self._replicas.broker_id}"
            if partition.error_code == ErrorCode.NONE:
                if index in unstable:
                    raise PropertyViolatedError(promises.STABLE_OFFSETS, message)
                group.on_read(index, offset, message, self._around.now_ms)
                self._around.ledger.counts["read offsets"] += 1

    def _in_time(
        self, group_id: str, what: tuple[str, str], then: Callable[[Any], None]
    ) -> Callable[[Any], None]:
        """Return a callback for an answer that has to come while this process is up.

        Excused is, as in Kafka, the answer to a request that its member has repeated, and to the
        sync of a member that has gone.
        """
        group, place = self._group(group_id), (self._replicas.broker_id, *what)
        mark, longest_ms = group.begin_wait(place), group.longest_wait_ms()
        begun_ms = self._around.now_ms
        is_over = False

        def demand() -> None:
            nonlocal begun_ms
            if is_over or not group.is_waited_for(place, mark):
                return
            if self._process.stalled_until_ms > begun_ms:
                # The process does now all that was due during its pause: the time begins again.
                begun_ms = self._process.stalled_until_ms
                self._around.events.at(begun_ms + longest_ms, self._process.guard(demand))
                return
            message = f"{what} of group {group_id} at broker {place[0]}: {longest_ms} ms"
            raise PropertyViolatedError(promises.ANSWERED_IN_TIME, message)

        def answered(answer: Any) -> None:
            nonlocal is_over
            is_over = True
            self._around.checks.held(promises.ANSWERED_IN_TIME)
            then(answer)

        self._around.events.after(longest_ms, self._process.guard(demand))
        return answered

    def _in_own_event(self, check: Callable[[], None]) -> None:
        """Check now; raise what is broken in an event of its own, where no handler swallows it."""
        try:
            check()
        except PropertyViolatedError as error:
            self._around.events.after(0, partial(_throw, error))

    def _check(self, request: Message, answer: Message, asked_ms: float) -> None:
        code, now_ms = code_of(answer), self._around.now_ms
        if code not in _KNOWN_CODES:
            message = f"{type(request).__name__}: {ErrorCode(code).name}"
            raise PropertyViolatedError(promises.ANSWERS_KNOWN, message)
        self._around.checks.held(promises.ANSWERS_KNOWN)
        if isinstance(answer, JoinGroupResponse) and isinstance(request, JoinGroupRequest):
            self._group(request.group_id).on_generation(answer.generation_id)
        if not self._is_present_coordinator():
            return
        match request, answer:
            case (JoinGroupRequest(), JoinGroupResponse()) if code == ErrorCode.NONE:
                self._group(request.group_id).on_joined(request, answer, asked_ms)
            case (SyncGroupRequest(), SyncGroupResponse()) if code == ErrorCode.NONE:
                self._group(request.group_id).on_assigned(request, answer)
                self._around.ledger.counts["assignments"] += 1
            case (HeartbeatRequest(), _) if code == ErrorCode.NONE:
                group = self._group(request.group_id)
                # Sessions begin with the request, whose answer may wait for what is not committed.
                group.on_heartbeat(request.member_id, request.generation_id, asked_ms)
                group.on_alive(asked_ms)
            case (JoinGroupRequest() | SyncGroupRequest() | HeartbeatRequest(), _):
                self._group(request.group_id).on_refusal(
                    code, request.member_id, request.group_instance_id, now_ms
                )
            case _:
                pass

    def _group(self, group_id: str) -> GroupLedger:
        return self._around.groups[group_id]

    def _is_present_coordinator(self) -> bool:
        """Return whether no later leader is known to the quorum, and this one knows what it has.

        As in Kafka, a former coordinator answers with what it knew, and one that is loading keeps
        every member. A new one reads offsets up to its high watermark, which may be an older one,
        but assigns what it has loaded, committed or not.
        """
        partition = self._replicas.partition(OFFSETS_ID, 0)
        topic = self._around.quorum.committed_image.topics.by_id[OFFSETS_ID]
        return (
            partition is not None
            and partition.is_leader
            and partition.leader_epoch == topic.partitions[0].leader_epoch
            and partition.is_offset_available
            and any(True for _ in self._service.runtime.active_shards())
        )


def _api_of(request: Message) -> BrokerApi[Any]:
    return _APIS[type(request)]


def _throw(error: PropertyViolatedError) -> None:
    raise error
