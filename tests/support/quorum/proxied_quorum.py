"""A quorum of our controllers that reach each other through proxies, whose ways are cut or slowed.

A controller is advertised under its proxy's address, so every other one comes through there. Who
comes is read from the client id of its first request, which has the node's id. What is cut is
held, as packets that are sent again are: it arrives once the way is open.
"""

import asyncio
import re
import signal
import socket
import struct
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

from tests.support.node import Node
from tests.support.node_process import Ended
from tests.support.ports import free_ports
from tests.support.quorum.quorum import Quorum
from tests.support.waiting import PATIENCE_S, Threads

T = TypeVar("T")
CHUNK_BYTES = 65536
# Of a replica, and of what else a node has to ask; anybody else's way is never cut.
_NODE_ID = re.compile(rb"(?:raft-client-)?(\d+)")
_STRANGER = 0
# Frame size, API key, API version, correlation id, length of the client id.
_FIRST_FIELDS = struct.Struct(">ihhih")
# Quick, and still slow enough for a machine that does other things as well.
TIMES: Final = {
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.request.timeout.ms": "800",
}


class _Way:
    """Bytes from one node to another pass here, when they may."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.delay_s = 0.0

    async def passed(self) -> None:
        """Wait as long as bytes take on this way."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        await self.is_open.wait()


class Network:
    """Proxies for controllers, at `ports` by node id; as a context they run.

    The event loop has a thread of its own, so that everything here may be called from a test.
    """

    def __init__(self, node_ids: Collection[int]) -> None:
        self.ports = dict(zip(node_ids, free_ports(len(node_ids)), strict=True))
        self._targets: dict[int, int] = {}
        self._ways: dict[tuple[int, int], _Way] = {}
        self._listening: dict[int, socket.socket] = {}
        self._links: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._threads = Threads()

    def __enter__(self) -> Self:
        self._threads.start(self._loop.run_forever)
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads.join()
        self._loop.close()

    def listen(self, node_id: int, port: int) -> None:
        """Let connections to a node be made, which listens at this port."""
        self._targets[node_id] = port
        self._call(lambda: self._listen(node_id))

    def refuse(self, node_id: int) -> None:
        """Refuse new connections to a node, as its machine does where nothing listens."""
        self._call(lambda: self._refuse(node_id))

    def cut(self, source: int, destination: int) -> None:
        """Hold everything that `source` sends to `destination`, on whosever connection."""
        self._call(self._way(source, destination).is_open.clear)

    def slow(self, source: int, destination: int, *, delay_s: float) -> None:
        """Let everything from `source` to `destination` take so much longer."""
        self._call(lambda: setattr(self._way(source, destination), "delay_s", delay_s))

    def heal(self) -> None:
        """Open all ways; what was held arrives."""
        self._call(self._heal)

    def _heal(self) -> None:
        for way in self._ways.values():
            way.delay_s = 0.0
            way.is_open.set()

    def _way(self, source: int, destination: int) -> _Way:
        return self._ways.setdefault((source, destination), _Way())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def _call(self, work: Callable[[], object]) -> None:
        async def call() -> None:
            work()

        self._run(call())

    def _listen(self, node_id: int) -> None:
        listening = socket.create_server(("127.0.0.1", self.ports[node_id]))
        listening.setblocking(False)
        self._listening[node_id] = listening
        self._loop.add_reader(listening, self._accept, node_id)

    def _refuse(self, node_id: int) -> None:
        listening = self._listening.pop(node_id)
        self._loop.remove_reader(listening)
        listening.close()

    def _accept(self, node_id: int) -> None:
        try:
            connection, _ = self._listening[node_id].accept()
        except BlockingIOError:
            return
        link = self._loop.create_task(self._carry(node_id, connection))
        self._links.add(link)
        link.add_done_callback(self._links.discard)
        # Also where the task is cancelled before it begins.
        link.add_done_callback(lambda _: connection.close())

    async def _close(self) -> None:
        for node_id in list(self._listening):
            self._refuse(node_id)
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)
        # Aborted transports close their sockets in the next turn of the loop.
        await asyncio.sleep(0)

    async def _carry(self, node_id: int, connection: socket.socket) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(sock=connection)
            try:
                await self._link(node_id, reader, writer)
            finally:
                writer.transport.abort()

    async def _link(
        self, node_id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Connect a client to a node and carry what they say until one of them ends."""
        first, source = await _who_comes(reader)
        there, back = self._way(source, node_id), self._way(node_id, source)
        await there.passed()
        server_reader, server_writer = await asyncio.open_connection(
            "127.0.0.1", self._targets[node_id]
        )
        try:
            server_writer.write(first)
            pumps = [
                asyncio.ensure_future(_pump(reader, server_writer, there)),
                asyncio.ensure_future(_pump(server_reader, writer, back)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            server_writer.transport.abort()


async def _who_comes(reader: asyncio.StreamReader) -> tuple[bytes, int]:
    """Return the begin of the first request, and the id of the node it is from."""
    begin = await reader.readexactly(_FIRST_FIELDS.size)
    client_id = await reader.readexactly(_FIRST_FIELDS.unpack(begin)[-1])
    found = _NODE_ID.fullmatch(client_id)
    return begin + client_id, _STRANGER if found is None else int(found[1])


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Way) -> None:
    while data := await reader.read(CHUNK_BYTES):
        await way.passed()
        writer.write(data)
        await writer.drain()
    await way.passed()


class ProxiedQuorum(Quorum):
    """So many controllers with a network between them; as a context they run, but for `absent`.

    The `observers` of a dynamic quorum are controllers that are no voters at first. Clients ask a
    member past its proxy.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        *,
        is_dynamic: bool,
        settings: Mapping[str, str] = MappingProxyType({}),
        absent: Collection[int] = (),
        observers: Collection[int] = (),
    ) -> None:
        ids = range(1, count + 1)
        self.network = Network(ids)
        self._absent = {*absent}
        self._voters = {*ids} - {*observers} if is_dynamic else None
        self._paused: set[int] = set()
        own = {
            "process.roles": "controller",
            # There are no records but those that a test asks for.
            "metadata.max.idle.interval.ms": "0",
            # A played broker is never fenced.
            "broker.session.timeout.ms": "3600000",
            **TIMES,
        }
        super().__init__(
            Node(
                folder / str(node_id),
                {**own, "advertised.listeners": f"CONTROLLER://{self.advertised(node_id)}"},
                node_id=node_id,
            )
            for node_id in ids
        )
        self.configure({**({} if is_dynamic else self.static_voters(*ids)), **settings})

    def __enter__(self) -> Self:
        self.network.__enter__()
        try:
            self.form(self._voters)
            self.start(*(self.members.keys() - self._absent))
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.network.__exit__(*error)

    @property
    def majority(self) -> int:
        return len(self.members) // 2 + 1

    def advertised(self, node_id: int) -> str:
        """Return where the others ask a member: its proxy."""
        return f"127.0.0.1:{self.network.ports[node_id]}"

    def start(self, *node_ids: int) -> None:
        """Start some members, all of them if none is named; return before they take part."""
        for node_id in node_ids or self.members:
            self.network.listen(node_id, self.members[node_id].controller_port)
            super().start(node_id)

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            # Its port is closed at the moment when its connections break.
            self.network.refuse(node_id)
            super().kill(node_id)
            self._paused.discard(node_id)

    def stop(self, node_id: int) -> Ended:
        self.members[node_id].process.send(signal.SIGTERM)
        return self.wait_for_end(node_id)

    def wait_for_end(self, node_id: int) -> Ended:
        """Return how a member ended that ends by itself."""
        ended = self.members[node_id].process.wait()
        self.network.refuse(node_id)
        return ended

    def pause(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.members[node_id].process.send(signal.SIGSTOP)
            self._paused.add(node_id)

    def resume(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.members[node_id].process.send(signal.SIGCONT)
            self._paused.discard(node_id)

    def kill_all_at_once(self) -> None:
        """End all of them before one can act on the end of another."""
        self.pause(*self.members)
        self.kill(*self.members)

    def _running(self) -> list[Node]:
        return [one for one in super()._running() if one.node_id not in self._paused]
