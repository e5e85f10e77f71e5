"""A connection to a broker for one request, which ends when the request is given up."""

from typing import Final

from kvorum.simulation.network import OnReply
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.open_connection import OpenConnection
from kvorum.simulation.requests import OnAnswer
from kvorum.wire.primitives import Message

HAS_CLOSING_CLIENTS: Final = 0.5
"""The share of worlds in which those who give up a request close its connection, as clients do.

In the others a request goes on without its client.
"""


class ClosingConnection:
    """A connection for one request; a request that the network doubles has two."""

    def __init__(self, around: BrokerSurroundings, broker: int) -> None:
        self._around = around
        self._broker = broker
        self._opened: list[OpenConnection] = []
        self._is_given_up = False

    def serve(self, frame: bytes, reply: OnReply) -> None:
        """Have the broker handle the request; if it comes late, until it learns of the end."""
        server = self._around.servers[self._broker]
        if self._around.closing is None:
            server.receive(frame, reply)
            return
        opened = OpenConnection(server.incarnation)
        server.receive(frame, reply, opened)
        if self._is_given_up:
            self._around.end_connection_soon(self._broker, opened)
        else:
            self._opened.append(opened)

    def give_up(self) -> None:
        """End the connection, of which the broker learns soon."""
        self._is_given_up = True
        for opened in self._opened:
            self._around.end_connection_soon(self._broker, opened)
        self._opened.clear()

    def passing_on(self, on_answer: OnAnswer) -> OnAnswer:
        """Return what passes on an answer, and gives up the request where none has come."""

        def answered(answer: Message | None) -> None:
            if answer is None:
                self.give_up()
            on_answer(answer)

        return answered
