"""A disk of an embedded node that can be full, without that of the machine being so."""

import errno
import os
from pathlib import Path

from kvorum.storage.files import OpenFile, RealFileSystem, RealOpenFile


class FillableDisk(RealFileSystem):
    """The operating system's files, which take no more bytes while `is_full`."""

    is_full: bool = False

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents where they are missing."""
        self.check_space()
        super().make_directory(path)

    def check_space(self) -> None:
        """Raise the OSError of a full disk if this one is full."""
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self, path: Path, flags: int) -> OpenFile:
        return _FileOfDisk(self, path, os.open(path, flags | os.O_CLOEXEC, 0o644))


class _FileOfDisk(RealOpenFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: FillableDisk, path: Path, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self._disk = disk

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        self._disk.check_space()
        super().write_at(position, data)
