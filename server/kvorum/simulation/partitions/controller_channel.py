"""The way of a broker's requests to the controllers (Kafka's NodeToControllerChannelManager)."""

from __future__ import annotations

from typing import Final, TypeVar

from kvorum.node.coroutines import Wait
from kvorum.node.outbound.node_to_controller_channel_manager import ControllerUnreachableError
from kvorum.simulation.partitions.network import CONTROLLERS, Reply, answer
from kvorum.simulation.partitions.process import Process
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest
from kvorum.wire.primitives import Message

ANSWER_MS: Final = 400
"""The time for which a broker waits for an answer before it treats the connection as broken."""
Response = TypeVar("Response", bound=Message)


class SimulatedControllerChannel:
    """Asks the controller that a broker believes to be active, one connection for each request.

    As in Kafka, nothing guards against an AlterPartition request that arrives after its
    connection was given up: where the controller has refused to repeat it, the leader takes it
    for never applied. So a request here does not outlive its connection. Nor does anything guard
    against a registration of an earlier process that arrives after the one of the next: a machine
    takes longer to start than a request is under way.
    """

    def __init__(self, broker_id: int, around: Surroundings, process: Process) -> None:
        self._broker_id = broker_id
        self._around = around
        self._process = process

    def send(self, message: Message, kind: type[Response]) -> Wait[Response]:
        """Return the wait for the response; raises ControllerUnreachableError where none comes."""

        def ask(reply: Reply) -> None:
            self.ask(message, reply, delay_ms=self._delay_ms(message))

        return answer(kind, ask, ControllerUnreachableError("the connection broke"))

    def ask(self, request: Message, on_answer: Reply, *, delay_ms: float = 0) -> None:
        """Send a request; the answer is None where none comes from an active controller."""
        around, process = self._around, self._process
        controller, incarnation = around.quorum.leader_of(process.node), process.incarnation
        is_over = False

        def end(answered: Message | None) -> None:
            nonlocal is_over
            is_over = True
            is_refused = getattr(answered, "error_code", 0) == ErrorCode.NOT_CONTROLLER
            on_answer(None if is_refused else answered)

        def serve(reply: Reply) -> None:
            if controller is None:
                reply(None)
            elif not is_over and process.incarnation == incarnation:
                around.quorum.ask(controller, request, reply)

        around.network.ask(
            (self._broker_id, CONTROLLERS),
            serve,
            process.guard_reply(end),
            timeout_ms=ANSWER_MS,
            delay_ms=delay_ms,
        )

    def _delay_ms(self, request: Message) -> float:
        """Return for how long to delay a request: a replica that joins an ISR may be struck."""
        delay_ms = 0.0
        if not isinstance(request, AlterPartitionRequest):
            return delay_ms
        by_id = self._around.quorum.committed_image.topics.by_id
        for topic in request.topics:
            for change in topic.partitions:
                partition = by_id[topic.topic_id].partitions[change.partition_index]
                members = {state.broker_id for state in change.new_isr_with_epochs}
                for joining in sorted(members - set(partition.isr)):
                    delay_ms = max(delay_ms, self._around.on_expansion(self._broker_id, joining))
        return delay_ms
