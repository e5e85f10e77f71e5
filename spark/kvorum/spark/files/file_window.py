"""Bytes of an open file, read in blocks of bounded size, for a reader that goes forward."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kvorum.spark.files.file_systems import ReadableFile, files_at
from kvorum.spark.files.log_file import LogFile

BLOCK_BYTES: Final = 4 * 1024 * 1024
_NOTHING: Final = memoryview(b"")


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


@contextmanager
def opened_window(
    file: LogFile, options: Mapping[str, Any], *, block_bytes: int = BLOCK_BYTES
) -> Generator[FileWindow]:
    """Yield a window on a file up to the size that was listed; `options` are fsspec's.

    Opening and reading raise OSError.
    """
    opened = files_at(file.path, options).open(file.path)
    try:
        yield FileWindow(opened, end=file.size, block_bytes=block_bytes)
    finally:
        opened.close()
