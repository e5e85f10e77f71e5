"""Changes of ISRs on their way to the active controller (Kafka's DefaultAlterPartitionManager)."""

from collections.abc import Callable

from kvorum.broker.partition_leader.alter_partition_manager import AlterPartitionManager
from kvorum.broker.partition_leader.outcomes import Answer, Refused
from kvorum.broker.partition_leader.partition_state import IsrProposal
from kvorum.node.broker.this_broker import ControllerChannel, ThisBroker
from kvorum.node.coroutines import Signal, whenever_due
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import ControllerUnreachableError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionResponse


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
