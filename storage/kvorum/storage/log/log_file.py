"""The .log file of a segment: batches are written after the last one, or nothing is."""

from pathlib import Path
from typing import NamedTuple

from kvorum.storage.errors import DiskError
from kvorum.storage.files import FileSystem, disk_error, disk_errors, is_out_of_descriptors


class SegmentRollbackError(DiskError):
    """A write failed and its first part could not be removed."""


class WrittenPart(NamedTuple):
    """The part of a segment that is in its file: its size, and the offset where it ends."""

    size: int
    end_offset: int


class LogFile:
    """An open .log file."""

    def __init__(
        self, path: Path, base_offset: int, *, files: FileSystem, create: bool = False
    ) -> None:
        self.path = path
        self._files = files
        with disk_errors(path, "opening"):
            self.file = files.open(path, create=create)
        self.written = WrittenPart(0, base_offset)
        """The part that the last write has reached; later appends may wait to be written."""

    def write(self, data: memoryview, position: int, written: WrittenPart) -> None:
        """Write batches at the end; `written` is then the part that is in the file.

        A DiskError leaves the file as it was. SegmentRollbackError means that even that failed.
        """
        try:
            self.file.write_at(position, data)
        except OSError as error:
            # Without a descriptor, nothing was written.
            if not is_out_of_descriptors(error):
                self._take_back(position, error)
            raise disk_error(error, path=self.path, doing="appending") from error
        self.written = written

    def _take_back(self, position: int, error: OSError) -> None:
        """Remove the bytes that a failed write may have left at `position`."""
        try:
            self.file.truncate(position)
        except OSError as second_error:
            problem = f"appending failed ({error.strerror}), and so did taking it back"
            raise SegmentRollbackError(
                problem, errno=second_error.errno, file=self.path
            ) from second_error

    def cut(self, size: int) -> None:
        """Remove the bytes from `size` on, durably; raises OSError."""
        self.file.truncate(size)
        self.file.sync()

    def sync(self) -> None:
        """Make everything written to the file durable."""
        with disk_errors(self.path, "syncing"):
            self.file.sync()

    def move_to(self, path: Path) -> None:
        """Go on with the file under its new name; no other thread may use it meanwhile."""
        self.path = path
        with disk_errors(path, "opening"):
            self.file.close()
            self.file = self._files.open(path)

    def close(self) -> None:
        """Close the file."""
        self.file.close()
