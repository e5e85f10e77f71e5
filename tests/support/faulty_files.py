"""A file system in memory that fails, tears and forgets on request.

It keeps apart what was written and what was synced, for bytes and for names, so that a power cut
can be played: `FaultyFiles.after_power_cut` gives one of the states a real disk may be left in.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from kvorum.storage.files import HeldLock, OpenFile


class PowerCutError(Exception):
    """Everything stops here; not an error that code could handle."""


class MemoryFile:
    """The bytes of one file, as written and as synced."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.synced = bytes(content)
        self.modified_ms = 0

    def after_power_cut(self, random: Random) -> MemoryFile:
        """Return what may be left: the synced bytes and some first part of what came after."""
        live, safe = bytes(self.content), self.synced
        if live[: len(safe)] != safe:
            # Overwritten or shortened without a sync: the change arrived, or it did not.
            return MemoryFile(random.choice([live, safe]))
        tail = live[len(safe) :]
        kept = random.randint(0, len(tail))
        return MemoryFile(safe + tail[:kept] + bytes(random.choice([0, 0, len(tail) - kept])))


@dataclass(slots=True)
class Fault:
    """Fail the `number`-th call (from 1) of `operation`; of a write, first do `written` bytes."""

    operation: str
    number: int
    error: int = errno.EIO
    written: int = 0


@dataclass(frozen=True, slots=True)
class NameChange:
    """A name given to a file, or taken away (None); of a rename both at once."""

    path: Path
    file: MemoryFile | None
    old_path: Path | None = None

    def apply(self, names: dict[Path, MemoryFile]) -> None:
        if self.file is None:
            names.pop(self.path, None)
        else:
            names[self.path] = self.file
        if self.old_path is not None:
            names.pop(self.old_path, None)

    def within(self, moved: DirectoryMove) -> NameChange:
        """Return the change as it is once its folder may have moved."""
        if self.path.parent != moved.source:
            return self
        old = None if self.old_path is None else moved.path / self.old_path.name
        return NameChange(moved.path / self.path.name, self.file, old)


@dataclass(frozen=True, slots=True)
class DirectoryMove:
    """A folder's new name `path`, for all that is in it."""

    path: Path
    source: Path

    def apply(self, names: dict[Path, MemoryFile]) -> None:
        for path in [each for each in names if each.parent == self.source]:
            names[self.path / path.name] = names.pop(path)

    def within(self, moved: DirectoryMove) -> DirectoryMove:
        """Return itself: folders lie side by side."""
        assert self.path.parent != moved.source
        return self


@dataclass(slots=True)
class FaultyOpenFile:
    """An open file of a `FaultyFiles`."""

    path: Path
    file: MemoryFile
    owner: FaultyFiles
    read_only: bool = False
    is_closed: bool = False

    def shared_descriptor(self) -> None:
        """Return None: no system has this file."""

    def read_at(self, position: int, size: int) -> bytes:
        self._demand_open()
        self.owner.count("read", self.path)
        self._demand_open()
        return bytes(self.file.content[position : position + size])

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        assert not self.read_only
        self._demand_open()
        try:
            self.owner.count("write", self.path)
        except OSError:
            self._put(position, bytes(data)[: self.owner.written_before_failure])
            raise
        self._put(position, bytes(data))

    def _put(self, position: int, data: bytes) -> None:
        content = self.file.content
        if data and len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data

    def truncate(self, size: int) -> None:
        self._demand_open()
        self.owner.count("truncate", self.path)
        content = self.file.content
        del content[size:]
        content.extend(bytes(size - len(content)))

    def size(self) -> int:
        self._demand_open()
        return len(self.file.content)

    def sync(self) -> None:
        self._demand_open()
        self.owner.count("sync", self.path)
        self.file.synced = bytes(self.file.content)

    def close(self) -> None:
        self.is_closed = True

    def _demand_open(self) -> None:
        """Refuse to go on as the system does, also where another thread has closed the file."""
        if self.is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self.path))


@dataclass(slots=True)
class FaultyLock:
    """A lock of a `FaultyFiles`."""

    path: Path
    locked: set[Path]

    def release(self) -> None:
        self.locked.discard(self.path)


@dataclass(slots=True)
class FaultyFiles:
    """A `FileSystem` in memory; see the module."""

    names: dict[Path, MemoryFile] = field(default_factory=dict[Path, MemoryFile])
    directories: set[Path] = field(default_factory=set[Path])
    read_only: set[Path] = field(default_factory=set[Path])
    faults: list[Fault] = field(default_factory=list[Fault])
    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    written_before_failure: int = 0
    calls_until_power_cut: int | None = None
    # Changes of names since the last sync of their folder, in order.
    unsynced: list[NameChange | DirectoryMove] = field(
        default_factory=list[NameChange | DirectoryMove]
    )
    durable: dict[Path, MemoryFile] = field(default_factory=dict[Path, MemoryFile])
    locked: set[Path] = field(default_factory=set[Path])
    meanwhile: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    reads_until_meanwhile: int = 0

    def before_read(self, number: int, action: Callable[[], None]) -> None:
        """Do something before the `number`-th read from now on, as another thread might."""
        self.reads_until_meanwhile = number
        self.meanwhile.append(action)

    def fail(self, operation: str, number: int) -> None:
        """Let the `number`-th call of `operation` from now on fail."""
        self.faults.append(Fault(operation, number))

    def count(self, operation: str, path: Path) -> None:
        """Note a call, and raise where a fault is due."""
        self.calls.append((operation, path.name))
        if operation == "read" and self.meanwhile:
            self.reads_until_meanwhile -= 1
            if self.reads_until_meanwhile == 0:
                self.meanwhile.pop()()
        if self.calls_until_power_cut is not None:
            self.calls_until_power_cut -= 1
            if self.calls_until_power_cut < 0:
                raise PowerCutError
        for fault in self.faults:
            if fault.operation == operation:
                fault.number -= 1
                if fault.number == 0:
                    self.written_before_failure = fault.written
                    raise OSError(fault.error, "injected failure")

    def _change(self, change: NameChange | DirectoryMove) -> None:
        change.apply(self.names)
        self.unsynced.append(change)

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        self.count("open", path)
        if path not in self.names:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file")
            self._change(NameChange(path, MemoryFile()))
        return FaultyOpenFile(path, self.names[path], self, read_only=read_only)

    def create_exclusively(self, path: Path) -> OpenFile:
        self.count("create", path)
        if path in self.names:
            raise FileExistsError(errno.EEXIST, "file exists")
        self._change(NameChange(path, MemoryFile()))
        return FaultyOpenFile(path, self.names[path], self)

    def exists(self, path: Path) -> bool:
        return path in self.names or path in self.directories

    def list_names(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self.names if path.parent == directory)

    def list_directories(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self.directories if path.parent == directory)

    def make_directory(self, path: Path) -> None:
        self.directories.add(path)

    def remove_directory(self, path: Path) -> None:
        self.count("remove", path)
        self.directories.discard(path)
        for name in [each for each in self.names if each.parent == path]:
            self._change(NameChange(name, None))

    def rename(self, source: Path, target: Path) -> None:
        self.count("rename", source)
        if source in self.directories:
            self.directories ^= {source, target}
            self._change(DirectoryMove(target, source))
            return
        self._change(NameChange(target, self.names[source], old_path=source))

    def remove(self, path: Path) -> None:
        self.count("remove", path)
        if path in self.names:
            self._change(NameChange(path, None))

    def make_read_only(self, path: Path) -> None:
        self.read_only.add(path)

    def modified_ms(self, path: Path) -> int:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "no such file")
        return self.names[path].modified_ms

    def set_modified_ms(self, path: Path, time_ms: int) -> None:
        self.names[path].modified_ms = time_ms

    def sync_directory(self, directory: Path) -> None:
        self.count("sync_directory", directory)
        kept: list[NameChange | DirectoryMove] = []
        for change in self.unsynced:
            if change.path.parent == directory:
                change.apply(self.durable)
                if isinstance(change, DirectoryMove):
                    kept = [one.within(change) for one in kept]
            else:
                kept.append(change)
        self.unsynced = kept

    def lock(self, path: Path) -> HeldLock | None:
        if path in self.locked:
            return None
        self.locked.add(path)
        return FaultyLock(path, self.locked)

    def after_process_crash(self) -> FaultyFiles:
        """Return the file system as the next process finds it: all that was written is there."""
        names = {path: MemoryFile(bytes(file.content)) for path, file in self.names.items()}
        return FaultyFiles(names=names, directories=set(self.directories), durable=dict(names))

    def after_power_cut(self, random: Random) -> FaultyFiles:
        """Return one of the states that a power cut may leave behind.

        Names changed since the last sync of their folder arrived in order, up to some point.
        """
        names = dict(self.durable)
        for change in self.unsynced[: random.randint(0, len(self.unsynced))]:
            change.apply(names)
        # One file may carry two names for a moment: it must stay one file.
        contents = {id(file): file.after_power_cut(random) for file in names.values()}
        left = {path: contents[id(file)] for path, file in names.items()}
        return FaultyFiles(names=left, directories=set(self.directories), durable=dict(left))
