"""One client's connection: frames come in, are answered one at a time, and answers go out."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from kvorum.node.errors import CloseConnectionError
from kvorum.node.events.event import Event
from kvorum.node.events.rare_events import RareEvents
from kvorum.node.raft import Clock
from kvorum.node.serving.connection_limits import ConnectionLimits
from kvorum.node.serving.throttling import pause_ms

READ_AHEAD_BYTES = 64 * 1024
"""How much of following requests is taken in while one is being answered."""
_SIZE = struct.Struct(">i")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, and on which listener of ours."""

    host: str
    port: int
    listener: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ConnectionRules:
    """What all connections of a listener have in common.

    `answer` gets a frame without its size and returns the frame to send back, None for no
    response; it raises CloseConnectionError where the connection is to be closed.
    """

    listener: str
    frame_bytes_max: int
    answer: Callable[[bytes, Peer], Awaitable[bytes | None]]
    limits: ConnectionLimits
    clock: Clock


class OpenConnections(set["ServerConnection"]):
    """The connections of one listener; what is accepted once it `is_over` is closed at once."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = False
        self.closings = RareEvents()


class ServerConnection(asyncio.Protocol):
    """A connection from its first to its last byte.

    While a request is being answered, or its response waits for a slow reader, nothing but a little
    read-ahead is taken from the socket, so a client can neither reorder answers nor fill memory.
    """

    def __init__(self, rules: ConnectionRules, others: OpenConnections) -> None:
        self.last_active_ms = rules.clock.monotonic_ms()
        self._rules = rules
        self._others = others
        self._peer = Peer("?", 0, rules.listener)
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answering: asyncio.Task[None] | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._is_reading = True
        self._is_admitted = False

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self._answering is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection in, or close it at once where there are too many, or no more."""
        self._transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername") or ("?", 0)
        self._peer = Peer(str(name[0]), int(name[1]), self._rules.listener)
        if not self._others.is_over and self._rules.limits.admit(self._peer.host):
            self._is_admitted = True
            self._others.add(self)
        else:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Forget the connection; nobody waits for the answer any more."""
        self._transport = None
        self._buffer.clear()
        self._can_write.set()
        if self._answering is not None:
            self._answering.cancel()
        if self._is_admitted:
            self._is_admitted = False
            self._rules.limits.release(self._peer.host)
            self._others.discard(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes in, and begin with the next request if none is being answered."""
        self.last_active_ms = self._rules.clock.monotonic_ms()
        self._buffer += data
        if self._answering is None:
            self._begin_next()
        elif len(self._buffer) > READ_AHEAD_BYTES:
            self._set_reading(wanted=False)

    def pause_writing(self) -> None:
        """Hold back: the client does not read its responses as quickly as they come."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """Go on."""
        self._can_write.set()

    def close(self, reason: str) -> None:
        """Close because of `reason`, with a line in the log unless there was one a moment ago."""
        untold_count = self._others.closings.happened(self._rules.clock.monotonic_ms())
        if untold_count is not None:
            _log.info(
                Event(
                    "Closed a connection",
                    client=str(self._peer),
                    listener=self._peer.listener,
                    reason=reason,
                    others=untold_count or None,
                )
            )
        self.abort()

    def finish(self) -> None:
        """Close once the responses given so far have left."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _begin_next(self) -> None:
        try:
            frame = self._take_frame()
        except CloseConnectionError as error:
            self.close(str(error))
            return
        if frame is None:
            self._set_reading(wanted=True)
            return
        self._answering = asyncio.get_running_loop().create_task(self._answer(frame))

    def _take_frame(self) -> bytes | None:
        """Return the next whole frame out of the buffer, None while it is incomplete."""
        buffer = self._buffer
        if len(buffer) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(buffer)
        if not 0 <= size <= self._rules.frame_bytes_max:
            raise CloseConnectionError(
                f"a request of {size} bytes (the limit is {self._rules.frame_bytes_max})"
            )
        end = _SIZE.size + size
        if len(buffer) < end:
            return None
        frame = bytes(memoryview(buffer)[_SIZE.size : end])
        del buffer[:end]
        return frame

    async def _answer(self, frame: bytes) -> None:
        """Answer one frame, wait until the response can leave, then look for the next."""
        try:
            response = await self._rules.answer(frame, self._peer)
            if response is not None and self._transport is not None:
                self._transport.write(_SIZE.pack(len(response)) + response)
                await self._can_write.wait()
                pause = pause_ms(frame, response)
                if pause:
                    await asyncio.sleep(pause / 1000)
        except CloseConnectionError as error:
            self.close(str(error))
        except Exception:  # noqa: BLE001 - whatever it is, only this connection ends
            _log.exception("A request of %s broke its connection", self._peer)
            self.abort()
        finally:
            self._answering = None
        self.last_active_ms = self._rules.clock.monotonic_ms()
        if self._transport is not None:
            self._begin_next()

    def _set_reading(self, *, wanted: bool) -> None:
        if self._transport is None or wanted is self._is_reading:
            return
        self._is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
