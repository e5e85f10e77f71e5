"""The files of this machine, and of every file system that fsspec knows.

A path with a scheme (``s3://bucket/folder``) belongs to fsspec; any other path is local. Local
files are read with positioned reads and not mapped into memory: a node that truncates its log
would end the process that has the file mapped. `FileWindow` reads an open file in blocks.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from kvorum.log_files.errors import LogFilesError

SCHEME_END: Final = "://"
LOCAL_SCHEME: Final = "file://"
BLOCK_BYTES: Final = 4 * 1024 * 1024
_NOTHING: Final = memoryview(b"")


def files_at(path: str, options: Mapping[str, Any]) -> Files:
    """Return the file system that `path` is on; `options` are handed to fsspec.

    Raises `LogFilesError` for an unknown scheme, a missing package, or options that do not fit.
    """
    if SCHEME_END not in path or path.startswith(LOCAL_SCHEME):
        return LocalFiles()
    return RemoteFiles(path, options)


def walk_through_links(
    directory: str, *, on_error: Callable[[OSError], None]
) -> Iterator[tuple[str, list[str]]]:
    """Yield a directory and all below it, each with the names of its files, in a fixed order.

    Links to directories come last, and each directory comes once, whatever links lead to it.
    `on_error` is called with the error of a directory that cannot be listed.
    """
    links = [directory]
    seen: set[str] = set()
    for link in links:
        pending = [link]
        while pending:
            folder = pending.pop()
            real = os.path.realpath(folder)
            if real in seen:
                continue
            seen.add(real)
            listed = _Listed()
            try:
                listed.add_all(folder)
            except OSError as error:
                on_error(error)
            links += sorted(listed.links)
            pending += sorted(listed.folders, reverse=True)
            yield folder, sorted(listed.names)


class _Listed:
    """The paths of the folders and links in a directory, and the names of its files."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.links: list[str] = []
        self.names: list[str] = []

    def add_all(self, directory: str) -> None:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not entry.is_dir():
                    self.names.append(entry.name)
                elif entry.is_symlink():
                    self.links.append(entry.path)
                else:
                    self.folders.append(entry.path)


class LocalFiles:
    """The file system of this machine. Its methods raise OSError, as those of `RemoteFiles` do."""

    def full_path(self, path: str) -> str:
        """Return a path in the one form in which files, rows and errors name it."""
        path = path.removeprefix(LOCAL_SCHEME)
        return path.rstrip("/") or path

    def is_directory(self, path: str) -> bool:
        """Return whether there are files below `path`."""
        return Path(path).is_dir()

    def list_below(self, directory: str) -> dict[str, int]:
        """Return every file below a directory, at any depth, with its size in bytes.

        Links to directories are followed, as by brokers. A file that is deleted meanwhile is left
        out. Sizes are taken after all names are known: a segment with a successor in the list has
        its final size by then, even beside a node that writes.
        """
        names = [
            str(Path(folder, name))
            for folder, names in walk_through_links(directory, on_error=_raise)
            for name in names
        ]
        return dict(self._sizes(names))

    def _sizes(self, names: list[str]) -> Iterator[tuple[str, int]]:
        for name in names:
            try:
                yield name, self.size_of(name)
            except FileNotFoundError:
                continue

    def size_of(self, path: str) -> int:
        """Return a file's size in bytes; FileNotFoundError without one."""
        return Path(path).stat().st_size

    def expand(self, pattern: str) -> list[str]:
        """Return the paths that a glob pattern matches, sorted."""
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - the pattern may be absolute

    def open(self, path: str) -> LocalFile:
        """Open a file; FileNotFoundError without one."""
        return LocalFile(path)


def _raise(error: OSError) -> None:
    # A directory that is deleted meanwhile is left out, as a file is.
    if not isinstance(error, FileNotFoundError):
        raise error


class LocalFile:
    """A file of this machine that is open for reading."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - `close` closes it
        self.size = os.fstat(self._file.fileno()).st_size

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only at the end. Raises OSError."""
        parts: list[bytes] = []
        while size > 0:
            part = os.pread(self._file.fileno(), size, position)
            if not part:
                break
            parts.append(part)
            position += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Release the file."""
        self._file.close()


@contextmanager
def as_os_errors() -> Generator[None]:
    """Turn every error of a client library, which may be of any class, into an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(str(error).strip() or type(error).__name__) from error


class RemoteSystem(NamedTuple):
    """A file system of fsspec's, and the function that takes the scheme from its paths.

    `can_rename` is False for object stores, where a move is a copy and a removal.
    """

    system: Any
    strip_protocol: Any
    can_rename: bool


def remote_system(path: str, options: Mapping[str, Any]) -> RemoteSystem:
    """Return the file system of a path with a scheme; `options` are handed to fsspec.

    Raises `LogFilesError` for an unknown scheme, a missing package, or options that do not fit.
    """
    scheme, _, _ = path.partition(SCHEME_END)
    try:
        # Optional, for local files need no package; and without type hints.
        fsspec: Any = import_module("fsspec")
        system = fsspec.filesystem(scheme, **options)
        # The method that all of them have copies.
        can_rename = system.__class__.mv is not fsspec.AbstractFileSystem.mv
        return RemoteSystem(system, fsspec.core.strip_protocol, can_rename)
    except (ImportError, ValueError, TypeError) as error:
        reason = str(error).strip() or type(error).__name__
        raise LogFilesError(f"{path}: no file system for {scheme}://: {reason}") from error


class RemoteFiles:
    """A file system of fsspec's; paths keep their scheme."""

    def __init__(self, path: str, options: Mapping[str, Any]) -> None:
        self._scheme = path.partition(SCHEME_END)[0]
        self._system, self._strip_protocol, _ = remote_system(path, options)

    def full_path(self, path: str) -> str:
        """See `LocalFiles`."""
        # The names in listings have no scheme.
        url = path if SCHEME_END in path else f"{self._scheme}{SCHEME_END}{path}"
        with as_os_errors():
            return str(self._system.unstrip_protocol(self._strip_protocol(url)))

    def is_directory(self, path: str) -> bool:
        """See `LocalFiles`."""
        with as_os_errors():
            return bool(self._system.isdir(path))

    def list_below(self, directory: str) -> dict[str, int]:
        """See `LocalFiles`."""
        with as_os_errors():
            self._system.invalidate_cache()
            found: dict[str, dict[str, Any]] = self._system.find(directory, detail=True)
        return {self.full_path(name): int(facts["size"]) for name, facts in found.items()}

    def size_of(self, path: str) -> int:
        """See `LocalFiles`."""
        with as_os_errors():
            return int(self._system.size(path))

    def expand(self, pattern: str) -> list[str]:
        """See `LocalFiles`."""
        with as_os_errors():
            self._system.invalidate_cache()
            return sorted(self.full_path(name) for name in self._system.glob(pattern))

    def open(self, path: str) -> RemoteFile:
        """See `LocalFiles`."""
        return RemoteFile(self._system, path)


class RemoteFile:
    """A file of fsspec's; each read is a request for these bytes alone."""

    def __init__(self, system: Any, path: str) -> None:
        self._system = system
        self._path = path
        with as_os_errors():
            # A listing that was made before may be in fsspec's cache.
            system.invalidate_cache()
            self.size = int(system.size(path))

    def read_at(self, position: int, size: int) -> bytes:
        """See `LocalFile`."""
        end = min(position + size, self.size)
        if position >= end:
            return b""
        with as_os_errors():
            return bytes(self._system.cat_file(self._path, start=position, end=end))

    def close(self) -> None:
        """See `LocalFile`."""


ReadableFile: TypeAlias = LocalFile | RemoteFile
Files: TypeAlias = LocalFiles | RemoteFiles


class FileWindow:
    """The part of a file that is in memory; it moves with what is asked for.

    `end` is the position up to which the file is read.
    """

    def __init__(self, file: ReadableFile, *, end: int, block_bytes: int = BLOCK_BYTES) -> None:
        self.end = min(end, file.size)
        self._file = file
        self._block_bytes = block_bytes
        self._start = 0
        self._view = _NOTHING

    def at(self, position: int, size: int) -> memoryview:
        """Return `size` bytes from `position`; fewer only where the end is reached.

        Raises OSError. The bytes stay what they are: a later call replaces the window's buffer.
        """
        return self.block_at(position, size)[:size]

    def block_at(self, position: int, size: int) -> memoryview:
        """Return what is in memory from `position` on: `size` bytes at least, as `at` does."""
        begin = position - self._start
        if begin >= 0 and begin + size <= len(self._view):
            return self._view[begin:]
        wanted = min(max(size, self._block_bytes), self.end - position)
        if wanted <= 0:
            return _NOTHING
        self._view = memoryview(self._file.read_at(position, wanted))
        self._start = position
        return self._view
