"""The way of a follower's requests to a leader, over the simulated network."""

from __future__ import annotations

from typing import Final, TypeVar

from kvorum.node.coroutines import Wait, other_work
from kvorum.node.event_loop import Runtime
from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.simulation.partitions.network import Reply, answer
from kvorum.simulation.partitions.process import Process
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.primitives import Message

VERSION: Final = 18
TIMEOUT_MS: Final = 120
Response = TypeVar("Response", bound=Message)


class SimulatedLeader:
    """A leader as one process of a follower asks it; no connection outlives a lost answer."""

    def __init__(
        self,
        link: tuple[int, int],
        around: Surroundings,
        process: Process,
        runtime: Runtime,
    ) -> None:
        """`link` has the ids of the follower and of the leader."""
        self._link = link
        self._around = around
        self._process = process
        self._runtime = runtime

    @property
    def fetch_version(self) -> int:
        """The version of Fetch to use."""
        return VERSION

    def connect(self) -> Wait[None]:
        """Return the wait for a connection, which comes at once."""
        return other_work(self._runtime)

    def fetch(self, request: FetchRequest, version: int) -> Wait[FetchResponse]:
        """Return the wait for the response to a fetch."""
        del version
        return self._ask(request, FetchResponse)

    def list_offsets(self, request: ListOffsetsRequest) -> Wait[ListOffsetsResponse]:
        """Return the wait for offsets of the leader."""
        return self._ask(request, ListOffsetsResponse)

    def abort(self) -> None:
        """Do nothing: each request has a connection of its own."""

    def close(self) -> Wait[None]:
        """Return the wait for the end, which comes at once."""
        return other_work(self._runtime)

    def _ask(self, request: Message, kind: type[Response]) -> Wait[Response]:
        def ask(reply: Reply) -> None:
            reply = self._process.guard_reply(reply)
            self._around.ask(*self._link, request, reply, timeout_ms=TIMEOUT_MS)

        return answer(kind, ask, ConnectionLostError("the connection broke"))
