"""The files of the output: written, moved and removed, on this machine or by fsspec.

Executors and the driver use the same paths, so on a Spark cluster the output is on a file system
that all of them reach. Every file is written whole, under a name of its own, and then moved.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from kvorum.log_files.file_systems import LOCAL_SCHEME, SCHEME_END, as_os_errors, remote_system


def output_files(path: str, options: Mapping[str, Any]) -> OutputFiles:
    """Return the file system of an output; `options` are handed to fsspec.

    Raises `LogFilesError` for an unknown scheme, a missing package, or options that do not fit.
    """
    if SCHEME_END not in path or path.startswith(LOCAL_SCHEME):
        return LocalOutput()
    return RemoteOutput(path, options)


def output_root(path: str) -> str:
    """Return the one form of an output's path, to which names are joined."""
    if SCHEME_END in path and not path.startswith(LOCAL_SCHEME):
        return path.rstrip("/")
    return str(Path(path.removeprefix(LOCAL_SCHEME)).absolute())


class LocalOutput:
    """The file system of this machine. Its methods raise OSError, as those of `RemoteOutput` do."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file, with the directories above it; it is there whole or not at all.

        The bytes are durable before the file has its name.
        """
        self._unfinished(path, data).replace(path)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one; return whether it was written.

        It is there whole or not at all.
        """
        unfinished = self._unfinished(path, data)
        try:
            Path(path).hardlink_to(unfinished)
        except FileExistsError:
            return False
        finally:
            unfinished.unlink()
        return True

    def _unfinished(self, path: str, data: bytes) -> Path:
        unfinished = Path(f"{path}.unfinished")
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return unfinished

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file; None without one."""
        try:
            return Path(path).read_bytes()
        except FileNotFoundError:
            return None

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return Path(path).open("rb")

    def exists(self, path: str) -> bool:
        """Return whether there is such a file."""
        return Path(path).exists()

    def names_in(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted; none where it is missing."""
        try:
            return sorted(entry.name for entry in Path(directory).iterdir())
        except FileNotFoundError:
            return []

    def files_below(self, directory: str) -> list[str]:
        """Return the paths of the files at any depth, sorted; none where it is missing."""
        return sorted(
            posixpath.join(folder, name)
            for folder, _, names in os.walk(directory)
            for name in names
        )

    def move(self, source: str, target: str) -> None:
        """Move a file over `target`, whose directories are made."""
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(source).replace(target)

    def remove(self, path: str) -> None:
        """Remove a file; a missing one is not an error."""
        Path(path).unlink(missing_ok=True)

    def remove_tree(self, directory: str) -> None:
        """Remove a directory with all that is in it; a missing one is not an error."""
        shutil.rmtree(directory, ignore_errors=True)


class RemoteOutput:
    """A file system of fsspec's.

    One that cannot rename is an object store: there a written object is whole or not there at all,
    and a move is a copy and a removal.
    """

    def __init__(self, path: str, options: Mapping[str, Any]) -> None:
        found = remote_system(path, options)
        self._system = found.system
        self._renames = found.can_rename

    def write(self, path: str, data: bytes) -> None:
        """See `LocalOutput`."""
        with as_os_errors():
            if not self._renames:
                self._system.pipe_file(path, data)
                return
            unfinished = f"{path}.unfinished"
            self._make_parent(path)
            self._system.pipe_file(unfinished, data)
            self._rename(unfinished, path)

    def create(self, path: str, data: bytes) -> bool:
        """See `LocalOutput`; stores that cannot write on condition look before they write."""
        if self._renames:
            if self.exists(path):
                return False
            self.write(path, data)
            return True
        with as_os_errors():
            try:
                self._system.pipe_file(path, data, mode="create")
            except TypeError:
                # The file system does not know the mode.
                if self._system.exists(path):
                    return False
                self._system.pipe_file(path, data)
            except OSError:
                # Not all stores name the condition in their refusal.
                if self.exists(path):
                    return False
                raise
        return True

    def read(self, path: str) -> bytes | None:
        """See `LocalOutput`."""
        with as_os_errors():
            try:
                return bytes(self._system.cat_file(path))
            except FileNotFoundError:
                return None

    def open(self, path: str) -> BinaryIO:
        """See `LocalOutput`."""
        with as_os_errors():
            opened: BinaryIO = self._system.open(path, "rb")
        return opened

    def exists(self, path: str) -> bool:
        """See `LocalOutput`."""
        with as_os_errors():
            self._system.invalidate_cache()
            return bool(self._system.exists(path))

    def names_in(self, directory: str) -> list[str]:
        """See `LocalOutput`."""
        with as_os_errors():
            self._system.invalidate_cache()
            try:
                found: list[str] = self._system.ls(directory, detail=False)
            except FileNotFoundError:
                return []
        return sorted(posixpath.basename(path.rstrip("/")) for path in found)

    def files_below(self, directory: str) -> list[str]:
        """See `LocalOutput`."""
        with as_os_errors():
            self._system.invalidate_cache()
            found: list[str] = self._system.find(directory)
        return sorted(str(self._system.unstrip_protocol(path)) for path in found)

    def move(self, source: str, target: str) -> None:
        """See `LocalOutput`."""
        with as_os_errors():
            if self._renames:
                self._make_parent(target)
                self._rename(source, target)
                return
            self._system.cp_file(source, target)
            self._system.rm_file(source)

    def remove(self, path: str) -> None:
        """See `LocalOutput`."""
        if self.exists(path):
            with as_os_errors():
                self._system.rm_file(path)

    def remove_tree(self, directory: str) -> None:
        """See `LocalOutput`."""
        if self.exists(directory):
            with as_os_errors():
                self._system.rm(directory, recursive=True)

    def _rename(self, source: str, target: str) -> None:
        # HDFS renames over no file.
        if self._system.exists(target):
            self._system.rm_file(target)
        self._system.mv(source, target)

    def _make_parent(self, path: str) -> None:
        # In an object store that has no directories this does nothing, and must not make a bucket.
        parent = posixpath.dirname(path)
        if "/" in parent.partition(SCHEME_END)[2]:
            self._system.makedirs(parent, exist_ok=True)


OutputFiles: TypeAlias = LocalOutput | RemoteOutput
