"""The files of one segment by their names: the batches, and three indexes."""

from pathlib import Path
from typing import Final

from kvorum.storage.files import FileSystem, disk_errors
from kvorum.storage.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_name,
)

SEGMENT_SUFFIXES: Final = (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
"""The kinds of files, in the order in which they are renamed."""
_DATED_SUFFIXES: Final = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
"""The kinds of files that a copied segment has for sure."""


class SegmentFiles:
    """The names of a segment's files; `suffix` is what all of them end in, mostly nothing."""

    def __init__(
        self, directory: Path, base_offset: int, *, suffix: str, files: FileSystem
    ) -> None:
        self.suffix = suffix
        self._directory = directory
        self._base_offset = base_offset
        self._files = files

    def path(self, kind: str) -> Path:
        """Return the path of a file of one kind."""
        return self._path(kind, self.suffix)

    def _path(self, kind: str, suffix: str) -> Path:
        return self._directory / (offset_name(self._base_offset, kind) + suffix)

    def rename(self, suffix: str) -> list[Path]:
        """Let the files end in another suffix; return the new paths of those that there are.

        `suffix` stays: the caller sets it, unless nothing uses the files after that.
        """
        renamed: list[Path] = []
        for kind in SEGMENT_SUFFIXES:
            path = self.path(kind)
            target = self._path(kind, suffix)
            with disk_errors(path, "renaming"):
                if self._files.exists(path):
                    self._files.rename(path, target)
                    renamed.append(target)
        return renamed

    def remove(self) -> None:
        """Remove the files."""
        for kind in SEGMENT_SUFFIXES:
            with disk_errors(self.path(kind), "removing"):
                self._files.remove(self.path(kind))

    @property
    def modified_ms(self) -> int:
        """When the .log file was last changed, in milliseconds of the wall clock."""
        path = self.path(LOG_SUFFIX)
        with disk_errors(path, "looking"):
            return self._files.modified_ms(path)

    def set_modified_ms(self, time_ms: int) -> None:
        """Let the files count as last changed at another time."""
        for kind in _DATED_SUFFIXES:
            with disk_errors(self.path(kind), "setting the time of change"):
                self._files.set_modified_ms(self.path(kind), time_ms)
