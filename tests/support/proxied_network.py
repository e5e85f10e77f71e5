"""Proxies before nodes, whose ways are cut or slowed by who comes.

A node is advertised under its proxy's address, so others come through there. Who comes is read from
the client id of its first request, which has a number: a node's id, or one that a test has given
its client. What is cut is held, as packets that are sent again are: it arrives once the way is
open.
"""

import asyncio
import re
import socket
import struct
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE_S, Threads

T = TypeVar("T")
CHUNK_BYTES: Final = 65536
_NUMBER: Final = re.compile(rb"(?:raft-client-)?(\d+)")
"""Of a replica, and of whatever else has a number; anybody else's way is never cut."""
_STRANGER: Final = 0
_FIRST_FIELDS: Final = struct.Struct(">ihhih")
"""Frame size, API key, API version, correlation id, length of the client id."""


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
    """Proxies for nodes, at `ports` by node id; as a context they run.

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

    def cut_off(self, number: int) -> None:
        """Hold everything that one sends to the nodes, and that they send to it."""
        for node_id in self.ports:
            self.cut(number, node_id)
            self.cut(node_id, number)

    def slow(self, source: int, destination: int, *, delay_s: float) -> None:
        """Let everything from `source` to `destination` take so much longer."""
        self._call(lambda: setattr(self._way(source, destination), "delay_s", delay_s))

    def heal(self) -> None:
        """Open all ways; what was held arrives."""
        self._call(lambda: self._open(self._ways.values()))

    def reconnect(self, number: int) -> None:
        """Open all ways from and to one that was cut off; what was held arrives."""
        self._call(lambda: self._open(way for ends, way in self._ways.items() if number in ends))

    def _open(self, ways: Iterable[_Way]) -> None:
        for way in ways:
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
        there = self._way(source, node_id)
        back = self._way(node_id, source)
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
    found = _NUMBER.fullmatch(client_id)
    return begin + client_id, _STRANGER if found is None else int(found[1])


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Way) -> None:
    while data := await reader.read(CHUNK_BYTES):
        await way.passed()
        writer.write(data)
        await writer.drain()
    await way.passed()
