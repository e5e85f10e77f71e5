"""The way of a broker's requests to the controllers (Kafka's NodeToControllerChannelManager)."""

from __future__ import annotations

from typing import Final

from kvorum.simulation.partitions.network import CONTROLLERS, Reply
from kvorum.simulation.partitions.process import Process
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.wire.primitives import Message

ANSWER_MS: Final = 400
"""How long a broker waits for an answer before it treats the connection as broken."""
_LEARNS_OF_CONTROLLER: Final = 0.7


class ControllerChannel:
    """Asks the controller that a broker believes to be active, one connection for each request.

    As in Kafka, nothing guards against an AlterPartition request that arrives after its
    connection was given up: where the controller has refused to repeat it, the leader takes it
    for never applied. So a request here does not outlive its connection. Nor does anything guard
    against a registration of an earlier process that arrives behind the one of the next: a machine
    takes longer to start than a request is under way.
    """

    def __init__(self, broker_id: int, around: Surroundings, process: Process) -> None:
        self._broker_id = broker_id
        self._around = around
        self._process = process
        self._controller = around.quorum.active

    def find_controller(self) -> None:
        """Go to the active controller from the next request on."""
        self._controller = self._around.quorum.active

    def ask(self, request: Message, on_answer: Reply, *, delay_ms: float = 0) -> None:
        """Send a request; the answer is None on a broken connection."""
        around, controller = self._around, self._controller
        process, incarnation = self._process, self._process.incarnation
        is_over = False

        def told(answer: Message | None) -> None:
            nonlocal is_over
            is_over = True
            if answer is None and around.random.random() < _LEARNS_OF_CONTROLLER:
                self.find_controller()
            on_answer(answer)

        def serve(reply: Reply) -> None:
            if not is_over and process.incarnation == incarnation:
                around.quorum.ask(controller, request, reply)

        around.network.ask(
            (self._broker_id, CONTROLLERS),
            serve,
            process.guard_reply(told),
            timeout_ms=ANSWER_MS,
            delay_ms=delay_ms,
        )
