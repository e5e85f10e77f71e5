"""A file's bytes, mapped into memory and given back while a reader goes forward."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Final

RELEASED_AT_ONCE: Final = 8 * 1024 * 1024
"""The number of bytes that the reader goes on before it gives those before it back."""


class MappedFile:
    """The bytes of a file as `view`; an empty file, which cannot be mapped, has none.

    The mapping goes with the last view of it, such as a batch that is still in use. Opening raises
    OSError.
    """

    def __init__(self, path: Path) -> None:
        self._map: mmap.mmap | None = None
        self._released = 0
        with path.open("rb") as file:
            if path.stat().st_size > 0:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.view: Final = memoryview(b"" if self._map is None else self._map)

    def release(self, position: int) -> None:
        """Let the system take the memory of what is before `position`; it can be read again."""
        if self._map is None or position - self._released < RELEASED_AT_ONCE:
            return
        self._released = position - position % mmap.PAGESIZE
        # Not every system has this call.
        if hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED, 0, self._released)
