"""Frames of memory and of files: whole ones, slow readers, and files that are gone or shorter."""

import asyncio
import os
import select
import socket
import struct
import threading
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.waiting import wait_for_async

from kvorum.node.errors import CloseConnectionError
from kvorum.node.serving.frame_writer import READ_BYTES, SENDFILE_BYTES_MIN, FramePart, FrameWriter
from kvorum.node.tasks import run
from kvorum.storage.files import FileSystem, OpenFile, RealFileSystem
from kvorum.storage.log.file_records import FileRecords

CONTENT = bytes(range(251)) * 20_000
LARGE = len(CONTENT) - 10


class Flow(asyncio.Protocol):
    """The part of a connection that tells a writer when it may write."""

    def __init__(self) -> None:
        self.can_write = asyncio.Event()
        self.can_write.set()

    def pause_writing(self) -> None:
        self.can_write.clear()

    def resume_writing(self) -> None:
        self.can_write.set()


async def sent(writer: FrameWriter, parts: Sequence[FramePart]) -> None:
    """Send a frame, and return when the system has taken it."""

    async def send() -> None:
        sending = writer.send(parts)
        if sending is not None:
            await sending

    await run(send())


class Ends(NamedTuple):
    """A writer, and the client's end of its connection."""

    writer: FrameWriter
    near: socket.socket
    client: socket.socket

    async def until_full(self) -> None:
        """Wait until the system takes nothing more for the client."""
        await wait_for_async(lambda: not select.select([], [self.near], [], 0)[1], "it is full")

    async def received(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        data = bytearray()
        while len(data) < size:
            piece = await loop.sock_recv(self.client, 1 << 20)
            if not piece:
                break
            data += piece
        return bytes(data)

    async def demand(self, wanted: bytes, parts: Sequence[FramePart]) -> None:
        """Send a frame, which must arrive as these bytes."""
        sending = asyncio.create_task(sent(self.writer, parts))
        assert await self.received(len(wanted)) == wanted
        await sending


@asynccontextmanager
async def connected() -> AsyncGenerator[Ends]:
    near, far = socket.socketpair()
    far.setblocking(False)
    flow = Flow()
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: flow, sock=near)
    writer = FrameWriter(transport, flow.can_write)
    try:
        yield Ends(writer, near, far)
    finally:
        writer.close()
        transport.abort()
        far.close()


def opened(files: FileSystem, path: Path) -> OpenFile:
    files.make_directory(path.parent)
    file = files.open(path, create=True)
    file.write_at(0, CONTENT)
    return file


def frame_of(parts: Sequence[FramePart]) -> bytes:
    body = b"".join(bytes(part) for part in parts)
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("is_real", [True, False])
@pytest.mark.parametrize("size", [0, 1, SENDFILE_BYTES_MIN - 1, SENDFILE_BYTES_MIN, LARGE])
async def test_records_arrive_between_the_bytes_around_them(
    tmp_path: Path, size: int, *, is_real: bool
) -> None:
    files: FileSystem = RealFileSystem() if is_real else FaultyFiles()
    file = opened(files, tmp_path / "log")
    parts: list[FramePart] = [
        b"head",
        FileRecords(file, 3, size),
        b"tag",
        FileRecords(file, 7, size),
        b"end",
    ]
    wanted = frame_of(parts)
    async with connected() as ends:
        for _ in range(2):
            await ends.demand(wanted, parts)


async def test_what_is_sent_of_a_file_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(RealFileSystem(), tmp_path / "log")
    parts: list[FramePart] = [b"head", FileRecords(file, 0, LARGE)]
    wanted = frame_of(parts)

    def refuse(*_: object) -> bytes:
        raise AssertionError("the file was read")

    async with connected() as ends:
        monkeypatch.setattr(os, "pread", refuse)
        await ends.demand(wanted, parts)


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="the system does not tell")
async def test_what_is_on_the_disk_alone_is_read_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[FramePart] = [FileRecords(opened(RealFileSystem(), tmp_path / "log"), 0, LARGE)]
    wanted = frame_of(parts)
    in_loop, read = threading.current_thread(), set[tuple[threading.Thread, int]]()
    pread = os.pread

    def on_disk(*_: object) -> int:
        raise BlockingIOError

    def noted(number: int, size: int, position: int) -> bytes:
        read.add((threading.current_thread(), position))
        return pread(number, size, position)

    async with connected() as ends:
        monkeypatch.setattr(os, "preadv", on_disk)
        monkeypatch.setattr(os, "pread", noted)
        await ends.demand(wanted, parts)
    assert {position for _, position in read} >= set(range(0, LARGE, READ_BYTES))
    assert in_loop not in {thread for thread, _ in read}


@pytest.mark.parametrize("size", [1 << 30, SENDFILE_BYTES_MIN - 1], ids=["one range", "many"])
async def test_a_client_that_never_reads_takes_no_memory(tmp_path: Path, size: int) -> None:
    file = opened(RealFileSystem(), tmp_path / "log")
    file.truncate(1 << 30)
    ranges: list[FramePart] = [FileRecords(file, 0, size)]
    parts = ranges * 4_000 if size < SENDFILE_BYTES_MIN else ranges
    async with connected() as ends:
        tracemalloc.start()
        sending = asyncio.create_task(sent(ends.writer, parts))
        await ends.until_full()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert not sending.done()
        assert peak < 1 << 20
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def test_a_file_that_cannot_be_sent_is_read_as_its_client_reads(tmp_path: Path) -> None:
    parts: list[FramePart] = [FileRecords(opened(FaultyFiles(), tmp_path / "log"), 0, LARGE)]
    async with connected() as ends:
        tracemalloc.start()
        sending = asyncio.create_task(sent(ends.writer, parts))
        await ends.until_full()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < LARGE / 4
        wanted = frame_of(parts)
        assert await ends.received(len(wanted)) == wanted
        await sending


async def test_a_segment_that_is_closed_and_deleted_is_still_sent(tmp_path: Path) -> None:
    file = opened(RealFileSystem(), tmp_path / "log")
    parts: list[FramePart] = [FileRecords(file, 0, LARGE)]
    wanted = frame_of(parts)
    async with connected() as ends:
        sending = asyncio.create_task(sent(ends.writer, parts))
        await ends.until_full()
        file.close()
        (tmp_path / "log").unlink()
        # A file that takes the freed number would be sent instead.
        with (tmp_path / "other").open("wb"):
            assert await ends.received(len(wanted)) == wanted
        await sending


def test_a_descriptor_is_closed_with_the_last_range(tmp_path: Path) -> None:
    file = opened(RealFileSystem(), tmp_path / "log")
    records = FileRecords(file, 0, 1)
    descriptor = records.descriptor
    assert descriptor is not None
    number = descriptor.number
    file.close()
    assert os.fstat(number).st_size == len(CONTENT)
    del records, descriptor
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


@pytest.mark.parametrize("size", [100, LARGE])
@pytest.mark.parametrize("is_real", [True, False])
async def test_records_that_were_truncated_meanwhile_end_the_connection(
    tmp_path: Path, size: int, *, is_real: bool
) -> None:
    files: FileSystem = RealFileSystem() if is_real else FaultyFiles()
    file = opened(files, tmp_path / "log")
    records = FileRecords(file, 0, size)
    file.truncate(size - 1)
    async with connected() as ends:
        sending = asyncio.create_task(sent(ends.writer, [b"head", records, b"end"]))
        received = asyncio.create_task(ends.received(size + 11))
        with pytest.raises(CloseConnectionError, match="are left"):
            await sending
        received.cancel()


async def test_a_lost_connection_leaves_nothing_that_the_loop_watches(tmp_path: Path) -> None:
    file = opened(RealFileSystem(), tmp_path / "log")
    for _ in range(3):
        async with connected() as ends:
            sending = asyncio.create_task(sent(ends.writer, [FileRecords(file, 0, LARGE)]))
            await ends.until_full()
            ends.writer.close()
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
    async with connected() as ends:
        await ends.demand(b"\x00\x00\x00\x04next", [b"next"])
