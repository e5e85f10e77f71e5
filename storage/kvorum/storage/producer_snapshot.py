"""The producer-state files that Kafka keeps beside segments; for the metadata log always empty.

A broker's log remembers idempotent producers in them. The metadata log has none, yet Kafka writes
a file of ten bytes whenever it begins a segment or closes the log, named after the log's end then.
"""

from __future__ import annotations

import struct
from pathlib import Path

from kvorum.storage.files import FileSystem, disk_errors, replace_durably
from kvorum.storage.names import PRODUCER_SNAPSHOT_SUFFIX, offset_name, parse_offset_name
from kvorum.wire.checksums import crc32c

_VERSION = 1
_NO_ENTRIES = struct.pack(">i", 0)


def empty_producer_snapshot() -> bytes:
    """Return the file's content: version, checksum of what follows, number of entries."""
    return struct.pack(">hI", _VERSION, crc32c(_NO_ENTRIES)) + _NO_ENTRIES


def write_producer_snapshot(directory: Path, end_offset: int, files: FileSystem) -> None:
    """Write the empty producer state of a log that ends at `end_offset`, if it is not there."""
    path = directory / offset_name(end_offset, PRODUCER_SNAPSHOT_SUFFIX)
    with disk_errors(path, "looking"):
        is_there = files.exists(path)
    if not is_there:
        replace_durably(files, path, empty_producer_snapshot())


def remove_producer_snapshots(
    directory: Path, files: FileSystem, *, keep: frozenset[int], end_offset: int
) -> None:
    """Remove producer state that belongs to no segment: all but `keep` and the latest.

    What lies above `end_offset` goes in any case.
    """
    with disk_errors(directory, "listing"):
        parsed = [parse_offset_name(name) for name in files.list_names(directory)]
    offsets = [found[0] for found in parsed if found and found[1] == PRODUCER_SNAPSHOT_SUFFIX]
    valid = [offset for offset in offsets if offset <= end_offset]
    latest = max(valid, default=None)
    for offset in offsets:
        if offset > end_offset or (offset not in keep and offset != latest):
            path = directory / offset_name(offset, PRODUCER_SNAPSHOT_SUFFIX)
            with disk_errors(path, "removing"):
                files.remove(path)
