"""Reports of a broker to the controller: the ISRs that it proposes, the directories of replicas.

They are Kafka's DefaultAlterPartitionManager and AssignmentsManager.
"""

from collections.abc import Callable

from kvorum.broker.assignments import Assignments, PartitionKey
from kvorum.broker.partition_leader.alter_partition_manager import AlterPartitionManager
from kvorum.broker.partition_leader.leader import IsrProposal
from kvorum.broker.partition_leader.outcomes import Answer, Refused
from kvorum.node.broker.this_broker import ControllerChannel, ThisBroker
from kvorum.node.coroutines import Signal, whenever_due
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import ControllerUnreachableError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionResponse
from kvorum.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse


class DefaultAlterPartitionManager:
    """Sends the proposals of all partitions; `on_answer` gets the controller's answer to each."""

    def __init__(
        self,
        broker: ThisBroker,
        channel: ControllerChannel,
        on_answer: Callable[[IsrProposal, Answer], None],
    ) -> None:
        self._queue = AlterPartitionManager(broker.id)
        self._broker = broker
        self._channel = channel
        self._on_answer = on_answer
        self._submitted = Signal(broker.runtime)
        self._task = broker.run(
            whenever_due(broker.runtime, self._submitted, self._queue.next_due_ms, self._send)
        )

    def submit(self, proposal: IsrProposal) -> None:
        """Send a proposal; it is refused at once while another one of its partition is sent."""
        if self._queue.submit(proposal):
            self._submitted.set()
        else:
            self._on_answer(proposal, Refused(ErrorCode.OPERATION_NOT_ATTEMPTED))

    def close(self) -> None:
        """Send nothing more."""
        self._task.close()

    async def _send(self) -> None:
        now_ms = self._broker.runtime.monotonic_ms()
        request = self._queue.due(now_ms, broker_epoch=self._broker.epoch())
        assert request is not None
        try:
            response = await self._channel.send(request, AlterPartitionResponse)
        except (ControllerUnreachableError, NoCommonVersionError):
            self._queue.on_disconnected(self._broker.runtime.monotonic_ms())
            return
        now_ms = self._broker.runtime.monotonic_ms()
        for proposal, answer in self._queue.on_response(response, now_ms):
            self._on_answer(proposal, answer)


class AssignmentsManager:
    """Sends `Assignments` over a connection of its own."""

    def __init__(self, broker: ThisBroker, channel: ControllerChannel) -> None:
        self._assignments = Assignments(broker.id)
        self._broker = broker
        self._channel = channel
        self._reported = Signal(broker.runtime)
        self._on_accepted: dict[PartitionKey, tuple[bytes, Callable[[], None]]] = {}
        self._task = broker.run(
            whenever_due(broker.runtime, self._reported, self._assignments.next_due_ms, self._send)
        )

    def on_assignment(
        self, key: PartitionKey, directory_id: bytes, on_accepted: Callable[[], None] | None = None
    ) -> None:
        """Report the directory of a replica's log; `on_accepted` is called once it is known.

        A later report for the same replica takes the place of this one.
        """
        self._on_accepted.pop(key, None)
        if on_accepted is not None:
            self._on_accepted[key] = directory_id, on_accepted
        self._assignments.on_assignment(key, directory_id, self._now_ms())
        self._reported.set()

    def close(self) -> None:
        """Send nothing more."""
        self._task.close()

    async def _send(self) -> None:
        broker = self._broker
        request = self._assignments.due(broker.image().topics, broker_epoch=broker.epoch())
        if request is None:
            return
        try:
            response = await self._channel.send(request, AssignReplicasToDirsResponse)
        except (ControllerUnreachableError, NoCommonVersionError):
            self._assignments.on_disconnected(self._now_ms())
            return
        for key, directory_id in self._assignments.on_response(response, self._now_ms()):
            awaited = self._on_accepted.get(key)
            if awaited is not None and awaited[0] == directory_id:
                del self._on_accepted[key]
                awaited[1]()

    def _now_ms(self) -> float:
        return self._broker.runtime.monotonic_ms()
