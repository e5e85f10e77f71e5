"""The producer-state files that Kafka keeps beside segments; for the metadata log always empty.

A broker's log stores the state of idempotent producers in them. The metadata log has none, yet
Kafka writes a file of ten bytes whenever it begins a segment or closes the log, named after the
log's current end.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Protocol

from kvorum.storage.files import FileSystem, disk_errors, replace_durably
from kvorum.storage.names import PRODUCER_SNAPSHOT_SUFFIX, offset_name, parse_offset_name
from kvorum.wire.checksums import crc32c

_VERSION = 1
_NO_ENTRIES = struct.pack(">i", 0)


def empty_producer_snapshot() -> bytes:
    """Return the file's content: version, checksum of what follows, number of entries."""
    return struct.pack(">hI", _VERSION, crc32c(_NO_ENTRIES)) + _NO_ENTRIES


class ProducerSnapshots(Protocol):
    """The producer state that a log keeps in files named after offsets."""

    def write(self, end_offset: int) -> None:
        """Write the state as of `end_offset`, unless it exists."""
        ...

    def remove(self, offset: int) -> None:
        """Remove the state of a segment that is being removed."""
        ...

    def tidy(self, *, keep: frozenset[int], end_offset: int) -> None:
        """Remove files without a segment: all but `keep` and the latest up to `end_offset`."""
        ...


class EmptyProducerSnapshots:
    """The producer-state files of a log without producers."""

    def __init__(self, directory: Path, files: FileSystem) -> None:
        self._directory = directory
        self._files = files

    def write(self, end_offset: int) -> None:
        """Write the empty producer state of a log that ends at `end_offset`, unless it exists."""
        path = self._path(end_offset)
        with disk_errors(path, "looking"):
            is_there = self._files.exists(path)
        if not is_there:
            replace_durably(self._files, path, empty_producer_snapshot())

    def remove(self, offset: int) -> None:
        """Remove the state of a segment that is being removed."""
        path = self._path(offset)
        with disk_errors(path, "removing"):
            self._files.remove(path)

    def tidy(self, *, keep: frozenset[int], end_offset: int) -> None:
        """Remove files without a segment: all but `keep` and the latest.

        Files above `end_offset` are removed in any case.
        """
        with disk_errors(self._directory, "listing"):
            parsed = [parse_offset_name(name) for name in self._files.list_names(self._directory)]
        offsets = [found[0] for found in parsed if found and found[1] == PRODUCER_SNAPSHOT_SUFFIX]
        latest = max((offset for offset in offsets if offset <= end_offset), default=None)
        for offset in offsets:
            if offset > end_offset or (offset not in keep and offset != latest):
                self.remove(offset)

    def _path(self, offset: int) -> Path:
        return self._directory / offset_name(offset, PRODUCER_SNAPSHOT_SUFFIX)
