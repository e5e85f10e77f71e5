"""A connection whose requests arrive in the order in which they were sent, as TCP has it.

What is lost on the way breaks it: no later request arrives. Nor does one once the broker knows of
its end.
"""

from collections.abc import Callable
from functools import partial

from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.simulation.network import OnReply, Route, Serve
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.open_connection import OpenConnection
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
        self.opened = OpenConnection(self._incarnation)
        """The broker's side."""
        self._is_known_to_end = False
        self.opened.disconnect.add(self._note_known_end)
        self._early: dict[int, tuple[bytes, OnReply]] = {}

    def ask(
        self, request: Message, on_answer: OnAnswer, *, version: int, timeout_ms: float
    ) -> None:
        """Send a request behind all others; the answer is None where none comes in time."""
        self._around.requests.ask(
            self._link,
            request,
            self._next(),
            on_answer,
            timeout_ms=timeout_ms,
            version=version,
        )

    def ask_frame(
        self, frame: bytes, on_reply: Callable[[bytes | None], None], *, timeout_ms: float
    ) -> None:
        """Send the frame of a request behind all others, and pass on that of the answer."""
        self._around.requests.ask_frame(
            self._link, frame, self._next(), on_reply, timeout_ms=timeout_ms
        )

    def _next(self) -> Serve:
        """Return what serves the next request, in its turn."""
        number = self._asked_count
        self._asked_count += 1
        return partial(self._arrive, number)

    def serve(self, frame: bytes, reply: OnReply) -> None:
        """Have the broker handle a request whose turn it is."""
        self._around.servers[self.broker].receive(frame, reply, self.opened)

    def end(self) -> None:
        """End the connection, of which the broker learns soon in a world with ends."""
        if self._around.closing is not None:
            self._around.end_connection_soon(self.broker, self.opened)

    def _note_known_end(self, _: DisconnectListeners) -> None:
        self._is_known_to_end = True

    def _arrive(self, number: int, frame: bytes, reply: OnReply) -> None:
        """Have the broker handle a request, if all before it have come, and those after it."""
        if number < self._served_count or self._is_known_to_end:
            # The network has doubled it, or brings it too late.
            return
        self._early[number] = frame, reply
        server = self._around.servers[self.broker]
        while self._served_count in self._early and server.incarnation == self._incarnation:
            first = self._early.pop(self._served_count)
            self._served_count += 1
            self.serve(*first)
