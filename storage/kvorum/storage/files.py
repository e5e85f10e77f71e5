"""The file system as a small protocol; no other module of this package accesses it directly.

Everything else in this package takes a `FileSystem`. `RealFileSystem` is the operating system's; a
simulator or a test passes another one that loses or tears writes, or refuses operations.
Implementations raise OSError (FileNotFoundError where a file is not there); `disk_errors` turns
that into the package's own errors at the places where a file is known by its role.

Durability contract, as on POSIX: bytes of a file are durable after `OpenFile.sync`; that a name
exists, is gone or points elsewhere is durable after `FileSystem.sync_directory` of its folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Protocol

from kvorum.storage.errors import DiskError, DiskFullError, TooManyOpenFilesError

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})
_NS_PER_MS = 1_000_000
_FULL_DISK_ADVICE = "Free some space on that volume and start the node again"


class ReadableFile(Protocol):
    """One file that is open for reading at any position."""

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only where the file ends."""
        ...


class OpenFile(Protocol):
    """One open file; positions are given with each call.

    `read_at` and `sync` may run in one thread while `write_at` runs in another.
    """

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only where the file ends."""
        ...

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of `data` at `position`; an OSError may leave a part of it written."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        ...

    def size(self) -> int:
        """Return how many bytes the file has."""
        ...

    def sync(self) -> None:
        """Return once everything written to the file is durable."""
        ...

    def shared_descriptor(self) -> Descriptor | None:
        """Return the system's descriptor, which outlives `close`; None without one."""
        ...

    def close(self) -> None:
        """Close the file, as its last reference does when it goes; closing twice is allowed."""
        ...


class HeldLock(Protocol):
    """An exclusive lock that this process holds on a file."""

    def release(self) -> None:
        """Release the lock; releasing twice is allowed."""
        ...


class FileSystem(Protocol):
    """A file system, with the operations that the storage code needs."""

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        """Open a file; with `create` an empty one is made if it does not exist."""
        ...

    def create_exclusively(self, path: Path) -> OpenFile:
        """Create and open a file that must not be there yet (FileExistsError)."""
        ...

    def exists(self, path: Path) -> bool:
        """Return whether a file or directory of that name exists."""
        ...

    def list_names(self, directory: Path) -> list[str]:
        """Return the names of all entries of a directory, sorted."""
        ...

    def list_directories(self, directory: Path) -> list[str]:
        """Return the names of the directories in a directory, sorted."""
        ...

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents where they are missing."""
        ...

    def remove_directory(self, path: Path) -> None:
        """Delete a directory with everything in it; a missing one is not an error."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Move a file over `target` in one step."""
        ...

    def remove(self, path: Path) -> None:
        """Delete a file; a missing file is not an error."""
        ...

    def make_read_only(self, path: Path) -> None:
        """Make the file read-only for its owner, without access for others."""
        ...

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last changed, in milliseconds of the wall clock."""
        ...

    def set_modified_ms(self, path: Path, time_ms: int) -> None:
        """Let a file count as last changed at another time."""
        ...

    def sync_directory(self, directory: Path) -> None:
        """Return once the names in `directory` are durable."""
        ...

    def lock(self, path: Path) -> HeldLock | None:
        """Take the exclusive lock on a file, created if need be; return None if it is held."""
        ...


class Descriptor:
    """A descriptor of the operating system, closed when no object refers to it any more.

    A response that is being sent thus keeps a file open after its segment was closed or deleted.
    """

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only where the file ends."""
        first = os.pread(self.number, size, position)
        if len(first) in {size, 0}:
            return first
        pieces = [first]
        have = len(first)
        while have < size:
            piece = os.pread(self.number, size - have, position + have)
            if not piece:
                break
            pieces.append(piece)
            have += len(piece)
        return b"".join(pieces)

    def __del__(self) -> None:
        os.close(self.number)


class RealOpenFile:
    """A file of the operating system, by descriptor."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: Descriptor | None = Descriptor(descriptor)

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only where the file ends."""
        return self.shared_descriptor().read_at(position, size)

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of `data` at `position`."""
        descriptor = self.shared_descriptor()
        rest = memoryview(data)
        while rest:
            written = os.pwrite(descriptor.number, rest, position)
            position += written
            rest = rest[written:]

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        descriptor = self.shared_descriptor()
        os.ftruncate(descriptor.number, size)

    def size(self) -> int:
        """Return how many bytes the file has."""
        descriptor = self.shared_descriptor()
        return os.fstat(descriptor.number).st_size

    def sync(self) -> None:
        """Return once everything written to the file is durable."""
        descriptor = self.shared_descriptor()
        os.fsync(descriptor.number)

    def shared_descriptor(self) -> Descriptor:
        """Return the open descriptor; OSError once the file is closed."""
        descriptor = self._descriptor
        if descriptor is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self.path))
        return descriptor

    def close(self) -> None:
        """Drop the descriptor; it stays open for those that share it."""
        # A log that was never closed leaks no descriptor either: the last reference closes it.
        self._descriptor = None


class RealHeldLock:
    """An exclusive record lock on a whole file, held until it is released or the process ends.

    It excludes what Java's FileChannel.lock takes in another process, and other nodes of this one.
    It is released also where a child process has inherited the open file.
    """

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            try:
                _set_record_lock(descriptor, fcntl.F_UNLCK)
            finally:
                os.close(descriptor)


def _set_record_lock(descriptor: int, kind: int) -> None:
    """Lock or unlock a whole file, or raise OSError (EACCES, EAGAIN: the lock is held already).

    Where the system has them, the lock is bound to the open file and not to the process: a plain
    POSIX lock would not keep out a second node in the same process, and closing any other
    descriptor of the file would drop it.
    """
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:
        operation = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(descriptor, operation)
    else:
        whole_file = struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(descriptor, command, whole_file)


class RealFileSystem:
    """The operating system's files."""

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        """Open a file; with `create` an empty one is made if it does not exist."""
        mode = os.O_RDONLY if read_only else os.O_RDWR
        return self._open(path, mode | (os.O_CREAT if create else 0))

    def create_exclusively(self, path: Path) -> OpenFile:
        """Create and open a file that must not be there yet."""
        return self._open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def _open(self, path: Path, flags: int) -> OpenFile:
        return RealOpenFile(path, os.open(path, flags | os.O_CLOEXEC, 0o644))

    def exists(self, path: Path) -> bool:
        """Return whether a file or directory of that name exists."""
        return path.exists()

    def list_names(self, directory: Path) -> list[str]:
        """Return the names of all entries of a directory, sorted."""
        return sorted(entry.name for entry in directory.iterdir())

    def list_directories(self, directory: Path) -> list[str]:
        """Return the names of the directories in a directory, sorted."""
        return sorted(entry.name for entry in directory.iterdir() if entry.is_dir())

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents where they are missing."""
        path.mkdir(parents=True, exist_ok=True)

    def remove_directory(self, path: Path) -> None:
        """Delete a directory with everything in it; a missing one is not an error."""
        with suppress(FileNotFoundError):
            rmtree(path)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file over `target` in one step."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Delete a file; a missing file is not an error."""
        path.unlink(missing_ok=True)

    def make_read_only(self, path: Path) -> None:
        """Make the file read-only for its owner, without access for others."""
        path.chmod(0o400)

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last changed, in milliseconds of the wall clock."""
        return path.stat().st_mtime_ns // _NS_PER_MS

    def set_modified_ms(self, path: Path, time_ms: int) -> None:
        """Let a file count as last changed at another time."""
        os.utime(path, ns=(time_ms * _NS_PER_MS, time_ms * _NS_PER_MS))

    def sync_directory(self, directory: Path) -> None:
        """Return once the names in `directory` are durable."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: Path) -> HeldLock | None:
        """Take the exclusive lock on a file, created if need be; return None if it is held."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _set_record_lock(descriptor, fcntl.F_WRLCK)
        except OSError as error:
            os.close(descriptor)
            if error.errno in {errno.EACCES, errno.EAGAIN}:
                return None
            raise
        return RealHeldLock(descriptor)


@contextmanager
def disk_errors(path: Path, doing: str) -> Generator[None]:
    """Turn an OSError inside the block into a DiskError about `path`; `doing` is the operation."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, path=path, doing=doing) from error


def disk_error(error: OSError, *, path: Path, doing: str) -> DiskError:
    """Return the DiskError that stands for `error`."""
    problem = f"{doing} failed: {error.strerror or error}"
    if error.errno in _NO_SPACE:
        return DiskFullError(problem, errno=error.errno, file=path, advice=_FULL_DISK_ADVICE)
    if is_out_of_descriptors(error):
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        advice = f"Raise the limit of open files (ulimit -n), which is {limit} for this process"
        return TooManyOpenFilesError(problem, errno=error.errno, file=path, advice=advice)
    return DiskError(problem, errno=error.errno, file=path)


def is_out_of_descriptors(error: OSError) -> bool:
    """Return whether the process, or the whole system, has too many files open."""
    return error.errno in _NO_DESCRIPTOR


def read_whole(files: FileSystem, path: Path) -> bytes:
    """Return all bytes of a file; FileNotFoundError without one."""
    handle = files.open(path, read_only=True)
    try:
        return handle.read_at(0, handle.size())
    finally:
        handle.close()


def read_if_there(files: FileSystem, path: Path) -> bytes | None:
    """Return all bytes of a file, or None without one."""
    with disk_errors(path, "reading"):
        try:
            return read_whole(files, path)
        except FileNotFoundError:
            return None


def list_if_there(files: FileSystem, directory: Path) -> list[str]:
    """Return the sorted names of a directory's entries; an empty list without a directory."""
    with disk_errors(directory, "listing"):
        try:
            return files.list_names(directory)
        except FileNotFoundError:
            return []


def replace_durably(files: FileSystem, path: Path, data: bytes) -> None:
    """Replace a file by `data` so that a crash leaves either the old content or the new one.

    The data is written to ``<name>.tmp`` and synced, the file is moved over `path`, and the folder
    is synced: the same steps and the same name as for Kafka's small files. Raises DiskError; then
    the old file is still in place.
    """
    temporary = path.with_name(path.name + ".tmp")
    with disk_errors(path, "replacing"):
        try:
            write_anew(files, temporary, data, durably=True)
            files.rename(temporary, path)
        except OSError:
            with suppress(OSError):
                files.remove(temporary)
            raise
        files.sync_directory(path.parent)


def write_anew(files: FileSystem, path: Path, data: bytes, *, durably: bool) -> None:
    """Write a file in the place of one that may be there; raises OSError."""
    files.remove(path)
    handle = files.create_exclusively(path)
    try:
        handle.write_at(0, data)
        if durably:
            handle.sync()
    finally:
        handle.close()
