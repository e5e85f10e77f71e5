"""A broker one of whose logs has a slow disk: its clients wait, and no others do."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.node.embedded_cluster import running_node, set_config_at
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, list_offset, produce, values
from tests.support.topics import create, wait_until_written
from tests.support.waiting import PATIENCE_S

from kvorum.metadata.configs_image import ResourceType
from kvorum.storage.files import OpenFile, RealFileSystem, RealOpenFile
from kvorum.storage.log import disk_pace, recent_batches
from kvorum.wire.error_codes import ErrorCode

SLOW: str = "slow"
OTHER: str = "other"


class HeldDisk(RealFileSystem):
    """A disk that, once `holds` is set, holds an operation on the slow topic's log.

    It goes on when it is released, or fails.
    """

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.holds = False
        self.fails = False
        self.is_asked = threading.Event()
        self.is_released = threading.Event()

    def hold(self, operation: str, path: Path) -> None:
        is_of_log = path.parent.name == f"{SLOW}-0" and path.suffix == ".log"
        if self.holds and operation == self.operation and is_of_log:
            self.is_asked.set()
            assert self.is_released.wait(PATIENCE_S)
            if self.fails:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _open(self, path: Path, flags: int) -> OpenFile:
        return _HeldFile(self, path, os.open(path, flags | os.O_CLOEXEC, 0o644))


class _HeldFile(RealOpenFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: HeldDisk, path: Path, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self._disk = disk

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        self._disk.hold("write", self.path)
        super().write_at(position, data)

    def read_at(self, position: int, size: int) -> bytes:
        self._disk.hold("read", self.path)
        return super().read_at(position, size)

    def sync(self) -> None:
        self._disk.hold("sync", self.path)
        super().sync()


@asynccontextmanager
async def running_on(disk: HeldDisk, folder: Path) -> AsyncGenerator[str]:
    """Run a broker with both topics, a record in each; return its address."""
    async with running_node(folder, files=disk) as embedded:
        address = embedded.bootstrap_servers
        await asyncio.to_thread(create, address, SLOW, OTHER)
        for topic in (SLOW, OTHER):
            await asyncio.to_thread(wait_until_written, address, topic, batch(b"first"))
        yield address


def send(address: str, topic: str, acks: int) -> int:
    with RawClient(address) as client:
        return produce(client, topic, batch(b"second"), acks=acks).error_code


def search(address: str) -> int:
    with RawClient(address) as client:
        return list_offset(client, SLOW, 1)[0]


def read(address: str, topic: str) -> list[bytes | None]:
    with RawClient(address) as client:
        return values(fetch(client, topic, 0))


@pytest.mark.parametrize("acks", [1, -1])
async def test_a_slow_write_keeps_its_own_client_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    monkeypatch.setattr(disk_pace, "SLOW_MS", 0.0)
    disk = HeldDisk("write")
    async with running_on(disk, tmp_path) as address:
        disk.holds = True
        await _only_the_slow_topic_waits(disk, address, lambda: send(address, SLOW, acks))
        assert await asyncio.to_thread(read, address, SLOW) == [b"first", b"second"]


async def test_a_slow_sync_keeps_its_own_client_waiting(tmp_path: Path) -> None:
    disk = HeldDisk("sync")
    async with running_on(disk, tmp_path) as address:
        change = (address, ResourceType.TOPIC, SLOW, "flush.messages", "1")
        await asyncio.to_thread(set_config_at, *change)
        disk.holds = True
        await _only_the_slow_topic_waits(disk, address, lambda: send(address, SLOW, 1))


async def test_a_slow_fetch_keeps_its_own_client_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_batches, "KEPT_MAX", 2)
    disk = HeldDisk("read")

    def fetch_slowly() -> int:
        is_whole = read(address, SLOW) == [b"first", b"second", b"second"]
        return ErrorCode.NONE if is_whole else ErrorCode.CORRUPT_MESSAGE

    async with running_on(disk, tmp_path) as address:
        for _ in range(2):
            await asyncio.to_thread(send, address, SLOW, 1)
        disk.holds = True
        await _only_the_slow_topic_waits(disk, address, fetch_slowly)


async def test_a_slow_search_by_time_keeps_its_own_client_waiting(tmp_path: Path) -> None:
    disk = HeldDisk("read")
    async with running_on(disk, tmp_path) as address:
        disk.holds = True
        await _only_the_slow_topic_waits(disk, address, lambda: search(address))


async def _only_the_slow_topic_waits(
    disk: HeldDisk, address: str, ask_slowly: Callable[[], int]
) -> None:
    """Ask what the disk holds; meanwhile another topic is written and read."""
    asking = asyncio.create_task(asyncio.to_thread(ask_slowly))
    try:
        assert await asyncio.to_thread(disk.is_asked.wait, PATIENCE_S)
        assert await asyncio.to_thread(send, address, OTHER, 1) == ErrorCode.NONE
        assert await asyncio.to_thread(read, address, OTHER) == [b"first", b"second"]
        assert not asking.done()
    finally:
        disk.is_released.set()
    assert await asking == ErrorCode.NONE


async def test_a_slow_disk_that_fails_refuses_what_it_has_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_pace, "SLOW_MS", 0.0)
    disk = HeldDisk("write")
    async with running_on(disk, tmp_path) as address:
        disk.holds = True
        disk.fails = True
        producing = asyncio.create_task(asyncio.to_thread(send, address, SLOW, 1))
        assert await asyncio.to_thread(disk.is_asked.wait, PATIENCE_S)
        disk.is_released.set()
        assert await producing == ErrorCode.KAFKA_STORAGE_ERROR
