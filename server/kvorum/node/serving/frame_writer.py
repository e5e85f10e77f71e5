"""Sends response frames: bytes from memory, and records out of the files that hold them.

Records go from the file to the socket inside of the kernel (``sendfile``). Only a few, for which
that would cost more than it saves, and those of files that are none of the system's, are read. What
is on the disk alone is read into the system's memory by a thread first (on Linux).
"""

import asyncio
import errno
import fcntl
import os
import socket
import struct
import termios
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, cast

from kvorum.node.coroutines import Wait
from kvorum.node.errors import CloseConnectionError
from kvorum.node.serving.client_transport import ClientTransport
from kvorum.node.tasks import awaiting
from kvorum.storage.files import Descriptor
from kvorum.storage.log.file_records import FileRecords, TruncatedRecordsError

SENDFILE_BYTES_MIN: Final = 16 * 1024
"""Fewer records are read and sent together with what surrounds them: that is one call."""
SENDFILE_BYTES_MAX: Final = 1024 * 1024
"""The most that is sent before other connections get their turn."""
READ_BYTES: Final = 64 * 1024
"""The part of a file that is in memory at once where it has to be read."""

FramePart: TypeAlias = bytes | memoryview | FileRecords
_SIZE: Final = struct.Struct(">i")
_INT: Final = struct.Struct("i")
_NO_SENDFILE: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


class FrameWriter:
    """Writes to one connection; `can_write` is set while all that was written has left.

    The transport sends what is in memory. Files are sent by a second descriptor of its socket, as
    the event loop does not let two watch the same one, and only while the transport has nothing.
    """

    def __init__(self, transport: ClientTransport, can_write: asyncio.Event) -> None:
        # The transport then says when it has nothing left, and not when it has little.
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._can_write = can_write
        self._pending: list[bytes | memoryview] = []
        self._pending_bytes = 0
        self._socket: socket.socket | None = None
        self._handed_on_bytes = 0
        self.is_sending = False
        """Whether a part of a frame is sent, and the rest is not."""

    @property
    def taken_bytes(self) -> int:
        """The bytes that the client's system has taken so far; where that is unknown, ours."""
        left_bytes = self._transport.get_write_buffer_size()
        own: Any = self._transport.get_extra_info("socket")
        # Linux takes megabytes for a slow client, and nothing more for as long as it has most of
        # them. Other systems do not report how many they have.
        with suppress(OSError):
            left_bytes += _INT.unpack(fcntl.ioctl(own.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        return self._handed_on_bytes - left_bytes

    def send(self, frame: Sequence[FramePart]) -> Wait[None] | None:
        """Send a frame, its size first; return the wait until the system has taken it.

        Return None if the system took it at once. Memory is used for what `frame` has there, and
        for little more. Raises CloseConnectionError if records are not in their file any more, and
        OSError; so does the wait.
        """
        size = _SIZE.pack(sum(map(len, frame)))
        if FileRecords not in map(type, frame):
            return self._send_at_once([size, *cast("Sequence[bytes | memoryview]", frame)])
        if sum(len(part) for part in frame if isinstance(part, FileRecords)) >= SENDFILE_BYTES_MIN:
            self.is_sending = True
            return awaiting(partial(self._send, [size, *frame]))
        try:
            return self._send_at_once([size, *map(_in_memory, frame)])
        except TruncatedRecordsError as error:
            raise CloseConnectionError(str(error)) from error

    def _send_at_once(self, parts: Sequence[bytes | memoryview]) -> Wait[None] | None:
        data = b"".join(parts)
        self._handed_on_bytes += len(data)
        self._transport.write(data)
        if self._can_write.is_set():
            return None
        self.is_sending = True
        return awaiting(self._finish)

    async def _finish(self) -> None:
        """Wait until the system has taken all of a frame."""
        try:
            await self._can_write.wait()
        finally:
            self.is_sending = False

    async def _send(self, frame: Sequence[FramePart]) -> None:
        try:
            for part in frame:
                if not isinstance(part, FileRecords):
                    self._put(part)
                elif len(part) < SENDFILE_BYTES_MIN or not self._is_plain:
                    await self._send_read(part, 0)
                else:
                    await self._send_file(part)
            await self._flush()
        except TruncatedRecordsError as error:
            raise CloseConnectionError(str(error)) from error
        finally:
            self.is_sending = False

    def close(self) -> None:
        """Send nothing more; the connection is lost."""
        opened, self._socket = self._socket, None
        if opened is not None:
            asyncio.get_running_loop().remove_writer(opened)
            opened.close()

    @property
    def _is_plain(self) -> bool:
        """Whether the bytes of a file may go to the socket as they are."""
        return self._transport.get_extra_info("sslcontext") is None

    def _put(self, data: bytes | memoryview) -> None:
        self._pending.append(data)
        self._pending_bytes += len(data)

    async def _flush(self) -> None:
        """Hand on what is pending, and wait until the system has taken it."""
        self._handed_on_bytes += self._pending_bytes
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if pending:
            self._transport.write(b"".join(pending))
        await self._can_write.wait()

    async def _send_read(self, records: FileRecords, start: int) -> None:
        """Send records from `start` on by way of memory, a piece at a time."""
        while start < len(records):
            size = min(len(records) - start, READ_BYTES)
            if records.descriptor is not None:
                await _bring_in(records.descriptor, records.position + start, size)
            self._put(records.read(start, size))
            start += size
            if self._pending_bytes >= READ_BYTES:
                await self._flush()
                # Other connections get their turn, also where the client takes all at once.
                await asyncio.sleep(0)

    async def _send_file(self, records: FileRecords) -> None:
        await self._flush()
        descriptor = records.descriptor
        sent = 0 if descriptor is None else await self._sendfile(records, descriptor)
        await self._send_read(records, sent)

    async def _sendfile(self, records: FileRecords, descriptor: Descriptor) -> int:
        """Send records without reading them; return how many bytes, fewer where that cannot be."""
        target = self._opened()
        sent = 0
        while sent < len(records):
            size, position = min(len(records) - sent, SENDFILE_BYTES_MAX), records.position + sent
            await _bring_in(descriptor, position, size)
            try:
                count = os.sendfile(target.fileno(), descriptor.number, position, size)
            except BlockingIOError:
                await self._wait_for(target)
                continue
            except OSError as error:
                if error.errno in _NO_SENDFILE:
                    return sent
                raise
            if count == 0:
                raise TruncatedRecordsError(
                    f"{sent} of {len(records)} bytes are left at {records.position} of a log's file"
                )
            sent += count
            self._handed_on_bytes += count
            if count < size:
                await self._wait_for(target)
            else:
                await asyncio.sleep(0)
        return sent

    def _opened(self) -> socket.socket:
        if self._socket is None:
            own: Any = self._transport.get_extra_info("socket")
            self._socket = own.dup()
        assert self._socket is not None
        return self._socket

    async def _wait_for(self, target: socket.socket) -> None:
        """Wait until the socket takes more."""
        loop = asyncio.get_running_loop()
        is_ready = asyncio.Event()
        loop.add_writer(target, is_ready.set)
        try:
            await is_ready.wait()
        finally:
            # A connection that was lost meanwhile has removed it, and its number may be another's.
            if target.fileno() >= 0:
                loop.remove_writer(target)


def _in_memory(part: FramePart) -> bytes | memoryview:
    return part.read(0, len(part)) if isinstance(part, FileRecords) else part


async def _bring_in(descriptor: Descriptor, position: int, size: int) -> None:
    """Have a thread read a range of a file from the disk if the system's memory lacks it."""
    if not _is_in_memory(descriptor, position, size):
        await asyncio.to_thread(_read_in, descriptor, position, size)


def _is_in_memory(descriptor: Descriptor, position: int, size: int) -> bool:
    """Return whether the system has the end of a range in memory; True where that is unknown.

    It reads ahead in the order of the bytes, so that the end is there last.
    """
    flag = getattr(os, "RWF_NOWAIT", None)
    if flag is None:
        return True
    try:
        os.preadv(descriptor.number, [bytearray(1)], position + size - 1, flag)
    except BlockingIOError:
        return False
    except OSError:
        # Not every file system can do this; `sendfile` finds out whatever else it is.
        return True
    return True


def _read_in(descriptor: Descriptor, position: int, size: int) -> None:
    """Have the system read a range into its memory."""
    for place in range(position, position + size, READ_BYTES):
        # Errors are for `sendfile` to meet.
        with suppress(OSError):
            descriptor.read_at(place, min(READ_BYTES, position + size - place))
