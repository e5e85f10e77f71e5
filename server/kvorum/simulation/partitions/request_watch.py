"""Checks of what a simulated broker answers: for each request, what its answer has to be.

An answer is looked at when it is decided on, before it travels.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.metadata.features import GROUP_VERSION_FEATURE
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.handlers.fetch import FIRST_VERSION_FROM_FOLLOWERS
from kvorum.node.handlers.produce import FIRST_VERSION_WITH_TOPIC_IDS
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.node.serving.request_metrics import count_errors
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.answer_check import Check
from kvorum.simulation.partitions.broker_machine import BrokerMachine
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.group_ledger import GroupLedger
from kvorum.simulation.partitions.groups import code_of
from kvorum.simulation.partitions.settings import OFFSETS_ID, TOPIC_ID
from kvorum.simulation.partitions.share_watch import ShareWatch
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kvorum.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kvorum.wire.messages.end_txn import EndTxnRequest
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.offset_commit import OffsetCommitRequest
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kvorum.wire.primitives import Message

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
_KNOWN_OF_CONSUMER_GROUPS: Final = _KNOWN_CODES | {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNRELEASED_INSTANCE_ID,
}
"""The same where the group may be one of the consumer protocol (KIP-848)."""
_KNOWN_OF_TRANSACTIONS: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""The codes that producers with a transactional id know of a coordinator."""
_KNOWN_OF_PARTITIONS: Final = _KNOWN_OF_TRANSACTIONS | {
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""The same where partitions are added, some of which the coordinator may not know yet."""
_KNOWN_OF_TRANSACTIONAL_OFFSETS: Final = _KNOWN_CODES | _KNOWN_OF_TRANSACTIONS
_TOPIC_UNKNOWN: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)


class RequestWatch:
    """The checks of one process."""

    def __init__(
        self,
        service: GroupCoordinatorService,
        replicas: ReplicaManager,
        around: BrokerSurroundings,
        machine: BrokerMachine,
        shares: ShareWatch | None,
    ) -> None:
        """`shares` has the checks of share groups, in a world with one."""
        self._shares = shares
        self._service = service
        self._replicas = replicas
        self._around = around
        self._machine = machine

    def on_request(
        self, request: Message, version: int, disconnect: DisconnectListeners | None
    ) -> Check:
        """Take note of a request that has arrived; return the check of its answer.

        After the end of its connection, which is reported to `disconnect`, no answer is due.
        """
        is_older = self._around.releases is not None and version < request.MAX_VERSION
        self._around.ledger.counts["requests of older clients"] += is_older
        shared = None if self._shares is None else self._shares.on_request(request)
        return self._check_of(request, version, disconnect) if shared is None else shared

    def on_own_request(self, request: Message) -> None:
        """Take note of a request of the broker to itself."""
        if self._shares is not None:
            self._shares.on_request(request)

    def _check_of(
        self, request: Message, version: int, disconnect: DisconnectListeners | None
    ) -> Check:
        match request:
            case ProduceRequest():
                return self._on_produce(request, version)
            case FetchRequest():
                return partial(
                    self._check_fetch, request, version, self._present_epoch(_replica_of(request))
                )
            case OffsetFetchRequest():
                return self._on_offset_fetch(request)
            case JoinGroupRequest():
                self._group(request.group_id).on_join(request, self._around.now_ms)
                in_time = self._in_time(request.group_id, ("join", request.member_id), disconnect)
                return self._of_group(request, in_time)
            case SyncGroupRequest():
                in_time = self._in_time(request.group_id, ("sync", request.member_id), disconnect)
                return self._of_group(request, in_time)
            case LeaveGroupRequest():
                # Former versions have one member.
                (member,) = request.members or [request.MemberIdentity(request.member_id)]
                group = self._group(request.group_id)
                group.on_leave(member.member_id, member.group_instance_id, self._around.now_ms)
                return self._of_group(request, _do_nothing)
            case (
                OffsetCommitRequest()
                | TxnOffsetCommitRequest()
                | HeartbeatRequest()
                | ConsumerGroupHeartbeatRequest()
            ):
                return self._of_group(request, _do_nothing)
            case InitProducerIdRequest() | AddOffsetsToTxnRequest() | EndTxnRequest():
                return partial(self._demand_known, request, _KNOWN_OF_TRANSACTIONS)
            case AddPartitionsToTxnRequest():
                return partial(self._demand_known, request, _KNOWN_OF_PARTITIONS)
            case _:
                return _pass

    def _on_produce(self, request: ProduceRequest, version: int) -> Check:
        (topic,) = request.topic_data
        topic_id = topic.topic_id if version >= FIRST_VERSION_WITH_TOPIC_IDS else TOPIC_ID
        before_ends: dict[int, int] = {}
        for data in topic.partition_data:
            partition = self._replicas.partition(topic_id, data.index)
            before_ends[data.index] = 0 if partition is None else partition.log.stored_end_offset

        def check(answer: Message) -> None:
            assert isinstance(answer, ProduceResponse)
            for answered in answer.responses[0].partition_responses:
                if answered.base_offset >= 0 and answered.index in before_ends:
                    is_written = answered.base_offset >= before_ends[answered.index]
                    name = "written batches" if is_written else "duplicates answered"
                    self._around.ledger.counts[name] += 1

        return check

    def _present_epoch(self, replica: int) -> int:
        """Return the epoch of a broker as the image has it; -1 for one that is not alive."""
        brokers = self._around.servers[self._replicas.broker_id].image.cluster.brokers
        known = brokers.get(replica)
        return NO_EPOCH if known is None or known.is_fenced else known.epoch

    def _check_fetch(
        self, request: FetchRequest, version: int, present_epoch: int, answer: Message
    ) -> None:
        """Check that a client or a follower which is served is to be served.

        `present_epoch` is what was known of the follower when the request came: whether it is
        served is decided then, even if it waits for records afterwards.
        """
        assert isinstance(answer, FetchResponse)
        replica = _replica_of(request)
        epoch = request.replica_state.replica_epoch
        broker_id = self._replicas.broker_id
        checks = self._around.checks
        for topic in answer.responses:
            for data in topic.partitions:
                if data.error_code != ErrorCode.NONE:
                    continue
                message = f"broker {broker_id} served {replica} in {epoch}: {data}"
                if replica < 0 and version < FIRST_VERSION_FROM_FOLLOWERS:
                    partition = self._replicas.partition(TOPIC_ID, data.partition_index)
                    is_leader = partition is not None and partition.is_leader
                    checks.demand(promises.FORMER_CLIENTS_ASK_LEADERS, message, holds=is_leader)
                # As in Kafka, every fetch gets the place where the logs part; no progress is noted.
                has_parted = data.diverging_epoch.epoch > NO_EPOCH
                if epoch > NO_EPOCH and present_epoch > NO_EPOCH and not has_parted:
                    is_present = epoch >= present_epoch
                    checks.demand(promises.ENDED_PROCESS_IS_REFUSED, message, holds=is_present)

    def _on_offset_fetch(self, request: OffsetFetchRequest) -> Check:
        """Check the offsets that the present coordinator answers with."""
        # Former versions have one group.
        (group_id,) = [group.group_id for group in request.groups] or [request.group_id]
        ledger = self._group(group_id)
        open_before = ledger.open_partitions()

        def check(answer: Message) -> None:
            assert isinstance(answer, OffsetFetchResponse)
            result = answer.groups[0] if answer.groups else answer
            if result.error_code != ErrorCode.NONE or not self._is_present_coordinator():
                return
            unstable = frozenset[int]()
            if request.require_stable:
                unstable = open_before & ledger.open_partitions()
                self._around.checks.held(promises.STABLE_OFFSETS)
            self._check_offsets(group_id, result, unstable)

        return check

    def _of_group(self, request: Message, on_answer: Callable[[], None]) -> Check:
        asked_ms = self._around.now_ms

        def check(answer: Message) -> None:
            on_answer()
            self._check(request, answer, asked_ms)

        return check

    def _check_offsets(
        self,
        group_id: str,
        answer: OffsetFetchResponseGroup | OffsetFetchResponse,
        unstable: frozenset[int],
    ) -> None:
        group = self._group(group_id)
        for partition in (one for topic in answer.topics for one in topic.partitions):
            index, offset = partition.partition_index, partition.committed_offset
            message = f"group {group_id}, partition {index}: {offset} "
            message += f"at broker {self._replicas.broker_id}"
            if partition.error_code == ErrorCode.NONE:
                if index in unstable:
                    raise PropertyViolatedError(promises.STABLE_OFFSETS, message)
                group.on_read(index, offset, message, self._around.now_ms)
                self._around.ledger.counts["read offsets"] += 1

    def _in_time(
        self, group_id: str, what: tuple[str, str], disconnect: DisconnectListeners | None
    ) -> Callable[[], None]:
        """Return what is to be called with an answer, which has to come while this process is up.

        Excused is, as in Kafka, the answer to a request that its member has repeated, to the sync
        of a member that has gone, and one whose connection has ended.
        """
        group, place = self._group(group_id), (self._replicas.broker_id, *what)
        mark, longest_ms = group.begin_wait(place), group.longest_wait_ms()
        begun_ms = self._around.now_ms
        is_over = False

        def demand() -> None:
            nonlocal begun_ms
            if is_over or not group.is_waited_for(place, mark):
                return
            if self._machine.stalled_until_ms > begun_ms:
                # The process does now all that was due during its pause: the time begins again.
                begun_ms = self._machine.stalled_until_ms
                self._around.events.at(begun_ms + longest_ms, self._machine.guard(demand))
                return
            message = f"{what} of group {group_id} at broker {place[0]}: {longest_ms} ms"
            raise PropertyViolatedError(promises.ANSWERED_IN_TIME, message)

        def end(_: DisconnectListeners) -> None:
            nonlocal is_over
            is_over = True

        def answered() -> None:
            nonlocal is_over
            is_over = True
            self._around.checks.held(promises.ANSWERED_IN_TIME)

        self._around.events.after(longest_ms, self._machine.guard(demand))
        if disconnect is not None:
            disconnect.add(end)
        return answered

    def _demand_known(self, request: Message, known: frozenset[ErrorCode], answer: Message) -> None:
        """Check the codes about a transaction."""
        codes = set(count_errors(answer))
        message = f"{type(request).__name__}: {codes}"
        self._around.checks.demand(promises.ANSWERS_KNOWN, message, holds=codes <= known)

    def _check(self, request: Message, answer: Message, asked_ms: float) -> None:
        code, now_ms = code_of(answer), self._around.now_ms
        is_transactional = isinstance(request, TxnOffsetCommitRequest)
        known = _KNOWN_OF_TRANSACTIONAL_OFFSETS if is_transactional else _KNOWN_CODES
        if isinstance(request, ConsumerGroupHeartbeatRequest | OffsetCommitRequest):
            known = _KNOWN_OF_CONSUMER_GROUPS
            self._check_member(request, code, asked_ms)
        if code not in known and not self._is_behind(code):
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

    def _check_member(
        self,
        request: ConsumerGroupHeartbeatRequest | OffsetCommitRequest,
        code: int,
        asked_ms: float,
    ) -> None:
        """Check what a member of a consumer group is answered, by whichever coordinator."""
        group = self._around.consumer_groups.get(request.group_id)
        if group is None:
            return
        now_ms, is_present = self._around.now_ms, self._is_present_coordinator()
        group.on_answer(
            code, request.member_id, asked_ms=asked_ms, now_ms=now_ms, is_present=is_present
        )
        is_heartbeat = isinstance(request, ConsumerGroupHeartbeatRequest)
        if is_heartbeat and is_present and code == ErrorCode.NONE:
            # Sessions begin with the request, whose answer may wait for what is not committed.
            group.on_heartbeat(request.member_id, asked_ms=asked_ms, now_ms=now_ms)

    def _is_behind(self, code: int) -> bool:
        """Return whether a broker refuses a topic or a protocol that it does not know of yet."""
        image = self._around.servers[self._replicas.broker_id].image
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return image.features.level(GROUP_VERSION_FEATURE) == 0
        return code in _TOPIC_UNKNOWN and TOPIC_ID not in image.topics.by_id

    def _group(self, group_id: str) -> GroupLedger:
        return self._around.groups[group_id]

    def _is_present_coordinator(self) -> bool:
        """Return whether no later leader is known to the quorum, and this one knows what it has.

        As in Kafka, a former coordinator answers with what it knew, and one that is loading keeps
        every member. A new one reads offsets up to its high watermark, which may be an older one,
        but assigns what it has loaded, committed or not.
        """
        partition = self._replicas.partition(OFFSETS_ID, 0)
        topic = self._around.committed_image.topics.by_id[OFFSETS_ID]
        return (
            partition is not None
            and partition.leader is not None
            and partition.leader_epoch == topic.partitions[0].leader_epoch
            and partition.leader.is_offset_available
            and any(True for _ in self._service.runtime.active_shards())
        )


def _do_nothing() -> None:
    pass


def _pass(_: Message) -> None:
    """Take any answer."""


def _replica_of(request: FetchRequest) -> int:
    """Return the broker that a fetch is from; a negative number for a consumer."""
    return max(request.replica_id, request.replica_state.replica_id)
