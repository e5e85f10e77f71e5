"""Reports to the controller in which log directories replicas are (Kafka's AssignmentsManager)."""

from collections.abc import Callable

from kvorum.broker.assignments import Assignments, PartitionKey
from kvorum.node.broker.this_broker import ControllerChannel, ThisBroker
from kvorum.node.coroutines import Signal, whenever_due
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import ControllerUnreachableError
from kvorum.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse


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
