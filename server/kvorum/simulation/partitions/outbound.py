"""The ways of a broker's requests: to the active controller, and to the leaders it follows."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.partition import Partition
from kvorum.node.coroutines import Wait, other_work
from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.node.outbound.node_to_controller_channel_manager import ControllerUnreachableError
from kvorum.node.runtime import Runtime
from kvorum.simulation.network import OnReply
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker_machine import BrokerMachine
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.closing_connection import ClosingConnection
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.simulation.requests import OnAnswer, answer
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.primitives import Message

ANSWER_MS: Final = 400
"""The time for which a broker waits for an answer before it treats the connection as broken."""
NOBODY_LEADS_MS: Final = 10
"""The time in which a broker finds that it knows no active controller."""
Response = TypeVar("Response", bound=Message)
TIMEOUT_MS: Final = 120


class SimulatedControllerChannel:
    """Asks the controller that a broker believes to be active, one connection for each request.

    As in Kafka, nothing guards against an AlterPartition request that arrives after its
    connection was given up: where the controller has refused to repeat it, the leader takes it
    for never applied. So a request here does not outlive its connection. Nor does anything guard
    against a registration of an earlier process that arrives after the one of the next: a machine
    takes longer to start than a request is under way.
    """

    def __init__(self, broker_id: int, around: BrokerSurroundings, machine: BrokerMachine) -> None:
        self._broker_id = broker_id
        self._around = around
        self._machine = machine

    def send(self, message: Message, kind: type[Response]) -> Wait[Response]:
        """Return the wait for the response; raises ControllerUnreachableError where none comes."""

        def ask(on_answer: OnAnswer) -> None:
            self.ask(message, on_answer, delay_ms=self._delay_ms(message))

        return answer(kind, ask, ControllerUnreachableError("the connection broke"))

    def ask(self, request: Message, on_answer: OnAnswer, *, delay_ms: float = 0) -> None:
        """Send a request, to be handled `delay_ms` after it has arrived.

        The answer is None where none comes from an active controller.
        """
        around, machine = self._around, self._machine
        process = machine.node.process
        controller = None if process is None else process.client.leader_id
        is_over = False

        def end(answered: Message | None) -> None:
            nonlocal is_over
            is_over = True
            is_refused = getattr(answered, "error_code", 0) == ErrorCode.NOT_CONTROLLER
            on_answer(None if is_refused else answered)

        guarded = machine.guard_reply(end)
        if controller is None:
            around.events.after(NOBODY_LEADS_MS, lambda: guarded(None))
            return

        def serve(frame: bytes, reply: OnReply) -> None:
            def handle() -> None:
                if not is_over and machine.node.process is process:
                    around.quorum.nodes[controller].take_request(frame, reply)

            around.events.after(delay_ms, handle)

        link = self._broker_id, controller
        around.requests.ask(link, request, serve, guarded, timeout_ms=ANSWER_MS)

    def _delay_ms(self, request: Message) -> float:
        """Return for how long to delay a request: a replica that joins an ISR may be struck."""
        delay_ms = 0.0
        if not isinstance(request, AlterPartitionRequest):
            return delay_ms
        by_id = self._around.committed_image.topics.by_id
        # Of a topic that is deleted meanwhile nothing is decided.
        for topic in [one for one in request.topics if one.topic_id in by_id]:
            for change in topic.partitions:
                partition = by_id[topic.topic_id].partitions[change.partition_index]
                members = {state.broker_id for state in change.new_isr_with_epochs}
                for joining in sorted(members - set(partition.isr)):
                    delay_ms = max(delay_ms, self._around.on_expansion(self._broker_id, joining))
        return delay_ms


class SimulatedLeader:
    """A leader as one process of a follower asks it; no connection outlives a lost answer."""

    def __init__(
        self,
        link: tuple[int, int],
        around: BrokerSurroundings,
        machine: BrokerMachine,
        runtime: Runtime,
        partition: Callable[[bytes, int], Partition | None],
    ) -> None:
        """`link` has the ids of the follower and of the leader.

        `partition` returns a replica of the follower.
        """
        self._link = link
        self._around = around
        self._machine = machine
        self._runtime = runtime
        self._partition = partition
        # The leader epochs of partitions that the leader has told to be over.
        self._fenced: set[tuple[bytes, int, int]] = set()

    @property
    def fetch_version(self) -> int:
        """The version of Fetch to use."""
        return self._around.settings.replica_fetch_version

    def connect(self) -> Wait[None]:
        """Return the wait for a connection, which comes at once."""
        return other_work(self._runtime)

    def fetch(self, request: FetchRequest, version: int) -> Wait[FetchResponse]:
        """Return the wait for the response to a fetch."""
        for topic in request.topics:
            for requested in topic.partitions:
                self._check(topic.topic_id, requested)
        note = partial(self._note_fenced, request)
        return self._ask(request, FetchResponse, note, version=version)

    def list_offsets(self, request: ListOffsetsRequest) -> Wait[ListOffsetsResponse]:
        """Return the wait for offsets of the leader."""
        return self._ask(request, ListOffsetsResponse)

    def abort(self) -> None:
        """Do nothing: each request has a connection of its own."""

    def close(self) -> Wait[None]:
        """Return the wait for the end, which comes at once."""
        return other_work(self._runtime)

    def _check(self, topic_id: bytes, requested: FetchRequest.FetchPartition) -> None:
        """Check what a follower asks for one partition; raises PropertyViolatedError."""
        message = f"broker {self._link[0]} of {self._link[1]}: {requested}"
        if (topic_id, requested.partition, requested.current_leader_epoch) in self._fenced:
            raise PropertyViolatedError(promises.FENCED_STAY_AWAY, message)
        checks = self._around.checks
        checks.held(promises.FENCED_STAY_AWAY)
        replica = self._partition(topic_id, requested.partition)
        if replica is None:
            return
        log = replica.log.local_log
        last_epoch = NO_EPOCH if log.latest_epoch is None else log.latest_epoch
        if (requested.fetch_offset, requested.last_fetched_epoch) != (
            log.stored_end_offset,
            last_epoch,
        ):
            where = f"; the log ends at {log.stored_end_offset} in epoch {last_epoch}"
            raise PropertyViolatedError(promises.FETCHED_FROM_END, message + where)
        checks.held(promises.FETCHED_FROM_END)

    def _note_fenced(self, request: FetchRequest, answered: Message | None) -> None:
        if not isinstance(answered, FetchResponse):
            return
        epochs = {
            (topic.topic_id, requested.partition): requested.current_leader_epoch
            for topic in request.topics
            for requested in topic.partitions
        }
        for topic in answered.responses:
            for data in topic.partitions:
                if data.error_code == ErrorCode.FENCED_LEADER_EPOCH:
                    place = topic.topic_id, data.partition_index
                    self._fenced.add((*place, epochs[place]))

    def _ask(
        self,
        request: Message,
        kind: type[Response],
        on_answer: OnAnswer = lambda _: None,
        *,
        version: int | None = None,
    ) -> Wait[Response]:
        around = self._around
        link = self._link

        def ask(take: OnAnswer) -> None:
            def pass_on(answered: Message | None) -> None:
                on_answer(answered)
                take(answered)

            guarded = self._machine.guard_reply(pass_on)
            connection = ClosingConnection(around, link[1])
            around.requests.ask(
                link,
                request,
                connection.serve,
                connection.passing_on(guarded),
                timeout_ms=TIMEOUT_MS,
                version=version,
            )

        return answer(kind, ask, ConnectionLostError("the connection broke"))
