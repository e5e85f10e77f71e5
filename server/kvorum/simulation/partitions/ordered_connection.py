"""A connection whose requests arrive in the order in which they were sent, as TCP has it.

What is lost on the way breaks it: no later request arrives.
"""

from kvorum.simulation.network import OnReply, Route
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.requests import OnAnswer
from kvorum.wire.primitives import Message


class OrderedConnection:
    """A client's connection to one process of a broker."""

    def __init__(self, around: BrokerSurroundings, link: Route) -> None:
        """`link` has the ids of the client and of the broker."""
        _, self.broker = link
        self._link = link
        self._around = around
        self._incarnation = around.servers[self.broker].incarnation
        self._asked_count = 0
        self._served_count = 0
        self._early: dict[int, tuple[bytes, OnReply]] = {}

    def ask(
        self, request: Message, on_answer: OnAnswer, *, version: int, timeout_ms: float
    ) -> None:
        """Send a request behind all others; the answer is None where none comes in time."""
        number = self._asked_count
        self._asked_count += 1

        def serve(frame: bytes, reply: OnReply) -> None:
            self._arrive(number, frame, reply)

        self._around.requests.ask(
            self._link,
            request,
            serve,
            on_answer,
            timeout_ms=timeout_ms,
            version=version,
        )

    def _arrive(self, number: int, frame: bytes, reply: OnReply) -> None:
        """Have the broker handle a request, if all before it have come, and those after it."""
        if number < self._served_count:
            # The network has doubled it.
            return
        self._early[number] = frame, reply
        server = self._around.servers[self.broker]
        while self._served_count in self._early and server.incarnation == self._incarnation:
            first = self._early.pop(self._served_count)
            self._served_count += 1
            server.receive(*first)
