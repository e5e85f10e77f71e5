"""The file system as one log directory uses it: what the disk refuses takes the directory offline.

Every access of the directory's logs, checkpoints and cleaner passes here, so no caller can miss a
failure. The error goes on to the caller as it is. Three errors are not failures of the disk: a name
that is not there where a caller only looks, a file that was closed while another thread read it,
and a descriptor that the process does not get.
"""

import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.files import (
    Descriptor,
    FileSystem,
    HeldLock,
    OpenFile,
    disk_error,
    is_out_of_descriptors,
)

_ReportError: TypeAlias = Callable[[OSError, Path, str], None]
_CLOSED_MEANWHILE: Final = errno.EBADF


class _LogFile:
    """A file whose failures are reported, and which is open in turns with others."""

    __slots__ = ("_again", "_file", "_is_closed", "_open_files", "_path", "_report", "is_used")

    def __init__(
        self, path: Path, again: Callable[[], OpenFile], open_files: OpenFiles, report: _ReportError
    ) -> None:
        self._path = path
        self._again = again
        self._open_files = open_files
        self._report = report
        self._is_closed = False
        self._file: OpenFile | None = None
        self.is_used = False

    def open(self, opening: Callable[[], OpenFile]) -> OpenFile:
        """Open the file by `opening`, if it is not open."""
        # Once the file is closed, its name may become that of another one.
        with self._open_files.lock:
            if self._is_closed:
                raise OSError(_CLOSED_MEANWHILE, os.strerror(_CLOSED_MEANWHILE), str(self._path))
            file = self._file
            if file is None:
                self.is_used = False
                file = self._file = self._open_files.open(self, opening)
            return file

    def _opened(self) -> OpenFile:
        file = self._file
        if file is None:
            return self.open(self._again)
        self.is_used = True
        return file

    def let_go(self) -> Descriptor | None:
        """Drop the open file, and return its descriptor if the system has one."""
        # It is not closed: another thread may be reading it.
        file, self._file = self._file, None
        return None if file is None else file.shared_descriptor()

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only where the file ends."""
        try:
            return self._opened().read_at(position, size)
        except OSError as error:
            self._report(error, self._path, "reading")
            raise

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        """Write all of `data` at `position`; an OSError may leave a part of it written."""
        try:
            self._opened().write_at(position, data)
        except OSError as error:
            self._report(error, self._path, "writing")
            raise

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        try:
            self._opened().truncate(size)
        except OSError as error:
            self._report(error, self._path, "truncating")
            raise

    def size(self) -> int:
        """Return how many bytes the file has."""
        try:
            return self._opened().size()
        except OSError as error:
            self._report(error, self._path, "measuring")
            raise

    def sync(self) -> None:
        """Return once everything written to the file is durable."""
        try:
            self._opened().sync()
        except OSError as error:
            self._report(error, self._path, "syncing")
            raise

    def shared_descriptor(self) -> Descriptor | None:
        """Return the system's descriptor; what is sent from it is not watched, as in Kafka."""
        try:
            return self._opened().shared_descriptor()
        except OSError as error:
            self._report(error, self._path, "opening")
            raise

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        with self._open_files.lock:
            self._is_closed = True
            self._open_files.forget(self)
            file, self._file = self._file, None
        if file is not None:
            file.close()


class LogDirectoryFiles:
    """A `FileSystem` for what is in `directory`; failures go to `channel`."""

    def __init__(
        self,
        files: FileSystem,
        directory: Path,
        channel: LogDirFailureChannel,
        open_files: OpenFiles,
    ) -> None:
        self._files = files
        self._directory = directory
        self._channel = channel
        self._open_files = open_files

    def _report(self, error: OSError, path: Path, doing: str) -> None:
        if error.errno != _CLOSED_MEANWHILE and not is_out_of_descriptors(error):
            failure = disk_error(error, path=path, doing=doing)
            self._channel.maybe_add_offline_log_dir(self._directory, failure)

    @contextmanager
    def _watched(
        self, path: Path, doing: str, expected: type[OSError] | None = None
    ) -> Generator[None]:
        try:
            yield
        except OSError as error:
            if expected is None or not isinstance(error, expected):
                self._report(error, path, doing)
            raise

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        """Open a file; with `create` an empty one is made if it does not exist."""
        with self._watched(path, "opening", None if create else FileNotFoundError):
            return self._log_file(
                path,
                partial(self._files.open, path, create=create, read_only=read_only),
                again=partial(self._files.open, path, read_only=read_only),
            )

    def create_exclusively(self, path: Path) -> OpenFile:
        """Create and open a file that must not be there yet (FileExistsError)."""
        with self._watched(path, "creating", FileExistsError):
            return self._log_file(
                path,
                partial(self._files.create_exclusively, path),
                again=partial(self._files.open, path),
            )

    def _log_file(
        self, path: Path, opening: Callable[[], OpenFile], *, again: Callable[[], OpenFile]
    ) -> OpenFile:
        file = _LogFile(path, again, self._open_files, self._report)
        file.open(opening)
        return file

    def exists(self, path: Path) -> bool:
        """Return whether a file or directory of that name exists."""
        with self._watched(path, "looking"):
            return self._files.exists(path)

    def list_names(self, directory: Path) -> list[str]:
        """Return the names of all entries of a directory, sorted."""
        with self._watched(directory, "listing", FileNotFoundError):
            return self._open_files.with_descriptors(lambda: self._files.list_names(directory))

    def list_directories(self, directory: Path) -> list[str]:
        """Return the names of the directories in a directory, sorted."""
        with self._watched(directory, "listing"):
            return self._open_files.with_descriptors(
                lambda: self._files.list_directories(directory)
            )

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents where they are missing."""
        with self._watched(path, "creating"):
            self._files.make_directory(path)

    def remove_directory(self, path: Path) -> None:
        """Delete a directory with everything in it; a missing one is not an error."""
        with self._watched(path, "removing"):
            self._open_files.with_descriptors(lambda: self._files.remove_directory(path))

    def rename(self, source: Path, target: Path) -> None:
        """Move a file over `target` in one step."""
        with self._watched(source, "renaming"):
            self._files.rename(source, target)

    def remove(self, path: Path) -> None:
        """Delete a file; a missing file is not an error."""
        with self._watched(path, "removing"):
            self._files.remove(path)

    def make_read_only(self, path: Path) -> None:
        """Make the file read-only for its owner, without access for others."""
        with self._watched(path, "protecting"):
            self._files.make_read_only(path)

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last changed, in milliseconds of the wall clock."""
        with self._watched(path, "looking", FileNotFoundError):
            return self._files.modified_ms(path)

    def set_modified_ms(self, path: Path, time_ms: int) -> None:
        """Let a file count as last changed at another time."""
        with self._watched(path, "dating"):
            self._files.set_modified_ms(path, time_ms)

    def sync_directory(self, directory: Path) -> None:
        """Return once the names in `directory` are durable."""
        with self._watched(directory, "syncing"):
            self._open_files.with_descriptors(lambda: self._files.sync_directory(directory))

    def lock(self, path: Path) -> HeldLock | None:
        """Take the exclusive lock on a file, created if need be; return None if it is held."""
        with self._watched(path, "locking"):
            return self._open_files.with_descriptors(lambda: self._files.lock(path))
