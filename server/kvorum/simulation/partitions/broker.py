"""A simulated broker: it registers, sends heartbeats, follows the metadata, leads and follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, NamedTuple

from kvorum.broker.partition_leader.alter_partition_manager import AlterPartitionManager
from kvorum.broker.partition_leader.errors import LeaderRefusesError
from kvorum.broker.partition_leader.leader import LeaderSettings, PartitionLeader
from kvorum.broker.partition_leader.outcomes import Refused
from kvorum.broker.partition_leader.partition_state import IsrProposal, PendingExpandIsr
from kvorum.broker.partition_leader.replica_state import FollowerFetch
from kvorum.metadata.features import supported_features
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.events import Events
from kvorum.simulation.partitions.ledger import Ledger
from kvorum.simulation.partitions.network import CONTROLLERS, Network
from kvorum.simulation.partitions.quorum import ControllerQuorum
from kvorum.simulation.partitions.replica_log import Entry, ReplicaLog
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
    BrokerRegistrationResponse,
)
from kvorum.wire.primitives import Message

TOPIC_ID: Final = bytes([1] * 16)
CLUSTER_ID: Final = "abcdefghijklmnopqrstuv"
HEARTBEAT_MS: Final = 60
LAG_MAX_MS: Final = 150
ANSWER_MS: Final = 400
"""How long a broker waits for an answer before it treats the connection as broken."""
FETCH_MS: Final = 40
"""How long a follower waits for the answer to a fetch before it fetches again."""
FETCH_RECORDS_MAX: Final = 6
MIN_INSYNC: Final = 2


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of a world that all its brokers share.

    `on_expansion` gets the ids of a leader and of the replica that is about to join its ISR, and
    returns for how long the request is delayed.
    """

    events: Events
    random: Random
    network: Network
    quorum: ControllerQuorum
    ledger: Ledger
    brokers: dict[int, Broker]
    on_expansion: Callable[[int, int], float]


class _FetchAnswer(NamedTuple):
    entries: tuple[Entry, ...] = ()
    high_watermark: int = 0
    diverging: tuple[int, int] | None = None
    code: ErrorCode = ErrorCode.NONE


class _Write(NamedTuple):
    partition: int
    offset: int
    value: int


class Broker:
    """A machine with its disk, and the process on it while one runs."""

    def __init__(self, broker_id: int, around: Surroundings, partitions: int) -> None:
        self.id = broker_id
        self._around = around
        self.logs = [ReplicaLog() for _ in range(partitions)]
        self.is_up = False
        self.is_stopping = False
        self._incarnation = 0
        self._clean_epoch = -1
        self._reset()

    def _reset(self) -> None:
        self._incarnation += 1
        self.epoch = -1
        self.is_unfenced = False
        self._image = MetadataImage()
        self._applied = 0
        self._registrations: dict[int, PartitionRegistration] = {}
        self._leaders: dict[int, PartitionLeader] = {}
        self._queue = AlterPartitionManager(self.id)
        self._attempt = 0
        self._fetches = [0] * len(self.logs)
        self._fetch_again_ms = [0.0] * len(self.logs)
        self._writes: list[_Write] = []
        self._controller = self._around.quorum.active

    # --- life -----------------------------------------------------------------------------

    def start(self) -> None:
        """Start a process."""
        self._reset()
        self.is_up, self.is_stopping = True, False
        random = self._around.random
        self._every(lambda: random.uniform(1, 25), self._read_metadata)
        self._every(lambda: HEARTBEAT_MS, self._beat)
        self._every(lambda: LAG_MAX_MS / 2, self._shrink)
        self._every(lambda: random.uniform(60, 400), self._flush)
        self._every(lambda: 10, self._pump)
        for index in range(len(self.logs)):
            self._every(lambda: random.uniform(3, 12), partial(self._fetch, index))

    def crash(self, *, is_power_lost: bool) -> None:
        """End the process at once; a loss of power also loses the records not flushed."""
        self.is_up = False
        self._clean_epoch = -1
        for log in self.logs:
            log.restart(is_power_lost=is_power_lost)

    def stop(self) -> None:
        """Ask for a controlled shutdown."""
        self.is_stopping = True

    def leader(self, index: int) -> PartitionLeader | None:
        """Return this broker's leader of a partition; None where it does not lead."""
        return self._leaders.get(index) if self.is_up else None

    def _stopped(self) -> None:
        self._flush()
        self.is_up = False
        self._clean_epoch = self.epoch
        for log in self.logs:
            log.restart(is_power_lost=False)

    def _every(self, interval_ms: Callable[[], float], action: Callable[[], None]) -> None:
        """Repeat an action while this process lives."""
        incarnation = self._incarnation

        def again() -> None:
            if self.is_up and self._incarnation == incarnation:
                action()
                self._around.events.after(interval_ms(), again)

        self._around.events.after(self._around.random.uniform(0, interval_ms()), again)

    def _flush(self) -> None:
        for log in self.logs:
            log.flush()

    # --- the controller -------------------------------------------------------------------

    def _ask(
        self, request: Message, on_answer: Callable[[Message | None], None], *, delay_ms: float = 0
    ) -> None:
        """Ask the controller that this broker knows; the answer is None on a broken connection."""
        around, controller, incarnation = self._around, self._controller, self._incarnation
        is_told = False

        def tell(answer: Message | None) -> None:
            nonlocal is_told
            if is_told or not self.is_up or self._incarnation != incarnation:
                return
            is_told = True
            if answer is None and around.random.random() < 0.7:
                self._controller = around.quorum.active
            on_answer(answer)

        def reply(answer: Message | None) -> None:
            around.network.send(CONTROLLERS, self.id, lambda: tell(answer))

        around.network.send(
            self.id,
            CONTROLLERS,
            lambda: around.quorum.ask(controller, request, reply),
            delay_ms=delay_ms,
        )
        around.events.after(ANSWER_MS, lambda: tell(None))

    def _beat(self) -> None:
        if self.epoch < 0:
            self._ask(self._registration(), self._on_registered)
            return
        request = BrokerHeartbeatRequest(
            broker_id=self.id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._applied - 1,
            want_fence=False,
            want_shut_down=self.is_stopping,
        )
        self._ask(request, self._on_heartbeat)

    def _registration(self) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.id,
            cluster_id=CLUSTER_ID,
            incarnation_id=bytes([self.id]) + self._incarnation.to_bytes(15, "big"),
            listeners=[BrokerRegistrationRequestListener("PLAIN", f"b{self.id}", 9092)],
            features=[
                BrokerRegistrationRequestFeature(name, range_.min, range_.max)
                for name, range_ in supported_features().items()
            ],
            log_dirs=[bytes([0xD0] * 15 + [self.id])],
            previous_broker_epoch=self._clean_epoch,
        )

    def _on_registered(self, answer: Message | None) -> None:
        if isinstance(answer, BrokerRegistrationResponse) and not answer.error_code:
            self.epoch = answer.broker_epoch
            # From now on only a controlled shutdown makes the next start a clean one.
            self._clean_epoch = -1

    def _on_heartbeat(self, answer: Message | None) -> None:
        if not isinstance(answer, BrokerHeartbeatResponse) or answer.error_code:
            return
        self.is_unfenced = not answer.is_fenced
        if answer.should_shut_down and self.is_stopping:
            self._stopped()

    def _read_metadata(self) -> None:
        around = self._around
        if around.network.is_cut(self.id, CONTROLLERS):
            return
        committed = around.quorum.committed
        count = around.random.choice((1, 5, len(committed)))
        records = committed[self._applied : self._applied + count]
        self._image = self._image.apply_all(
            (message, version, self._applied + index)
            for index, (message, version) in enumerate(records)
        )
        self._applied += len(records)
        broker = self._image.cluster.brokers.get(self.id)
        # A broker does nothing before it has read its own registration.
        if broker is not None and broker.epoch == self.epoch:
            self._follow_metadata()

    def _follow_metadata(self) -> None:
        topic = self._image.topics.by_id.get(TOPIC_ID)
        for index, partition in topic.partitions.items() if topic else ():
            if self.id in partition.replicas and self._registrations.get(index) != partition:
                self._registrations[index] = partition
                if partition.leader == self.id:
                    self._lead(index, partition)
                else:
                    self._leaders.pop(index, None)
                    self._writes = [one for one in self._writes if one.partition != index]

    # --- leading --------------------------------------------------------------------------

    def _lead(self, index: int, partition: PartitionRegistration) -> None:
        around, log = self._around, self.logs[index]
        leader = self._leaders.get(index)
        # A broker that reads two changes of the leader at once leads a new epoch without having
        # followed: the ledger hears of every epoch, so that it knows who begins too late.
        if leader is None or partition.leader_epoch > leader.leader_epoch:
            around.ledger.on_lead(
                index, log, leader_epoch=partition.leader_epoch, broker_id=self.id
            )
        if leader is None:
            leader = self._leaders[index] = PartitionLeader(
                LeaderSettings(
                    broker_id=self.id,
                    topic_id=TOPIC_ID,
                    partition_index=index,
                    lag_max_ms=LAG_MAX_MS,
                    min_insync_replicas=MIN_INSYNC,
                ),
                broker_epoch=lambda: self.epoch,
                cluster=lambda: self._image.cluster,
                high_watermark=log.high_watermark,
            )
        leader.lead(partition, log_end_offset=log.end_offset, now_ms=around.events.now_ms)
        self._after_leading(index, leader)

    def write(self, index: int, value: int) -> bool:
        """Append a record with ``acks=all``; False where this broker does not take it."""
        leader, log = self.leader(index), self.logs[index]
        if leader is None:
            return False
        try:
            leader.check_append()
        except LeaderRefusesError:
            return False
        log.entries.append(Entry(leader.leader_epoch, value))
        self._writes.append(_Write(index, log.end_offset - 1, value))
        leader.on_append(log.end_offset, self._around.events.now_ms)
        self._after_leading(index, leader)
        return True

    def _after_leading(self, index: int, leader: PartitionLeader) -> None:
        log, ledger = self.logs[index], self._around.ledger
        before, log.high_watermark = log.high_watermark, leader.high_watermark
        ledger.on_high_watermark(index, log, before=before, broker_id=self.id)
        still_waiting: list[_Write] = []
        for one in self._writes:
            code = leader.check_acks_all(one.offset + 1) if one.partition == index else None
            if code is None:
                still_waiting.append(one)
            elif code == ErrorCode.NONE:
                ledger.acknowledge(index, one.offset, one.value)
        self._writes = still_waiting

    def _shrink(self) -> None:
        for leader in self._leaders.values():
            self._submit(leader, leader.shrink(self._around.events.now_ms))

    def _submit(self, leader: PartitionLeader, proposal: IsrProposal | None) -> None:
        if proposal is not None and not self._queue.submit(proposal):
            refused = Refused(ErrorCode.OPERATION_NOT_ATTEMPTED)
            leader.on_answer(proposal, refused, self._around.events.now_ms)
        self._pump()

    def _pump(self) -> None:
        """Send the AlterPartition request that is due, if any."""
        request = self._queue.due(self._around.events.now_ms, broker_epoch=self.epoch)
        if request is None:
            return
        self._attempt += 1
        attempt = self._attempt
        self._ask(
            request, lambda answer: self._on_altered(attempt, answer), delay_ms=self._delay(request)
        )

    def _delay(self, request: AlterPartitionRequest) -> float:
        """Return how long the request is delayed: the world may strike the joining replica."""
        delay_ms = 0.0
        for topic in request.topics:
            for partition in topic.partitions:
                leader = self._leaders.get(partition.partition_index)
                if leader is not None and isinstance(leader.state, PendingExpandIsr):
                    delay_ms = max(
                        delay_ms, self._around.on_expansion(self.id, leader.state.joining)
                    )
        return delay_ms

    def _on_altered(self, attempt: int, answer: Message | None) -> None:
        now_ms = self._around.events.now_ms
        # A request that was sent again has a newer attempt; this answer's connection has ended.
        if attempt != self._attempt:
            return
        if not isinstance(answer, AlterPartitionResponse):
            self._queue.on_disconnected(now_ms)
            return
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            self._controller = self._around.quorum.active
            self._queue.on_disconnected(now_ms)
            return
        for proposal, result in self._queue.on_response(answer, now_ms):
            leader = self._leaders.get(proposal.partition_index)
            if leader is not None:
                again = leader.on_answer(proposal, result, now_ms)
                self._after_leading(proposal.partition_index, leader)
                if again is not None:
                    self._controller = self._around.quorum.active
                self._submit(leader, again)
        self._pump()

    def serve_fetch(self, index: int, fetch: FollowerFetch, last_epoch: int) -> _FetchAnswer:
        """Answer a follower: records, where its log diverges from this one, or an error."""
        leader, log = self.leader(index), self.logs[index]
        if leader is None:
            return _FetchAnswer(code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            leader.check_fetch(fetch)
            epoch, end_offset = log.end_of_epoch(last_epoch)
            if fetch.offset and (epoch < last_epoch or end_offset < fetch.offset):
                return _FetchAnswer(diverging=(epoch, end_offset))
            proposal = leader.on_fetch(fetch, self._around.events.now_ms)
        except LeaderRefusesError as refusal:
            return _FetchAnswer(code=refusal.code)
        self._after_leading(index, leader)
        self._submit(leader, proposal)
        entries = tuple(log.entries[fetch.offset : fetch.offset + FETCH_RECORDS_MAX])
        return _FetchAnswer(entries, log.high_watermark)

    # --- following ------------------------------------------------------------------------

    def _fetch(self, index: int) -> None:
        partition = self._registrations.get(index)
        if partition is None or partition.leader in (self.id, -1):
            return
        around, log, incarnation = self._around, self.logs[index], self._incarnation
        if around.events.now_ms < self._fetch_again_ms[index]:
            return
        self._fetch_again_ms[index] = around.events.now_ms + FETCH_MS
        self._fetches[index] += 1
        number, target = self._fetches[index], around.brokers[partition.leader]
        last_epoch = log.last_epoch
        fetch = FollowerFetch(
            broker_id=self.id,
            broker_epoch=self.epoch,
            leader_epoch=partition.leader_epoch,
            offset=log.end_offset,
        )

        def answered(answer: _FetchAnswer) -> None:
            is_current = self._incarnation == incarnation and self._fetches[index] == number
            if self.is_up and is_current and self._registrations.get(index) == partition:
                self._on_fetched(index, answer)

        def arrive() -> None:
            if target.is_up:
                answer = target.serve_fetch(index, fetch, last_epoch)
                around.network.send(target.id, self.id, lambda: answered(answer))

        around.network.send(self.id, target.id, arrive)

    def _on_fetched(self, index: int, answer: _FetchAnswer) -> None:
        log = self.logs[index]
        # The log's end changes: fetches from the former end, and their answers, are of no use.
        self._fetches[index] += 1
        self._fetch_again_ms[index] = 0.0
        if answer.code != ErrorCode.NONE:
            return
        if answer.diverging is not None:
            epoch, end_offset = answer.diverging
            log.truncate(min(end_offset, log.end_of_epoch(epoch)[1]))
            return
        log.entries.extend(answer.entries)
        log.high_watermark = min(answer.high_watermark, log.end_offset)
