"""The files that a new cluster starts from: bootstrap.checkpoint, and the snapshot at offset 0.

``bootstrap.checkpoint`` lies in the metadata log's data directory and holds the first metadata
records; the first active controller writes them into the log. The snapshot ``0-0`` lies in the log
directory itself and holds the first voters and kraft.version of a dynamic quorum. Both have the
form of a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kvorum.storage.errors import CorruptSnapshotError
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.storage.metadata_log.snapshot_reader import read_snapshot_batches
from kvorum.storage.metadata_log.snapshot_writer import SnapshotWriter
from kvorum.storage.metadata_log.snapshots import RawSnapshotWriter
from kvorum.wire.errors import DecodeError
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID
from kvorum.wire.records import read_batches

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
_EPOCH = 0
_NO_RECORDS_YET_MS = 0


@dataclass(slots=True)
class _Buffer:
    """A snapshot's bytes in memory, to be written and to be read."""

    path: Path
    content: bytearray = field(default_factory=bytearray)

    @property
    def size(self) -> int:
        return len(self.content)

    def append(self, data: bytes) -> None:
        self.content += data

    def read_at(self, position: int, size: int) -> bytes:
        return bytes(self.content[position : position + size])


def write_bootstrap_checkpoint(
    directory: Path, values: Iterable[bytes], files: FileSystem, *, now_ms: int
) -> None:
    """Replace the file in a data directory durably by one that holds the given framed records."""
    path = directory / BOOTSTRAP_CHECKPOINT
    buffer = _Buffer(path)
    writer = SnapshotWriter(
        buffer, epoch=_EPOCH, last_contained_timestamp_ms=_NO_RECORDS_YET_MS, now_ms=now_ms
    )
    writer.append(values, now_ms=now_ms)
    writer.finish(now_ms=now_ms)
    replace_durably(files, path, bytes(buffer.content))


def read_bootstrap_checkpoint(directory: Path, files: FileSystem) -> list[bytes] | None:
    """Return the framed records of a data directory's file, or None where there is none.

    Raises CorruptSnapshotError for a file that is damaged or incomplete.
    """
    path = directory / BOOTSTRAP_CHECKPOINT
    data = read_if_there(files, path)
    if data is None:
        return None
    values: list[bytes] = []
    for header, batch in read_snapshot_batches(_Buffer(path, bytearray(data))):
        if not header.is_control:
            values += _values_of(batch, path)
    return values


def _values_of(batch: memoryview, path: Path) -> list[bytes]:
    try:
        records = [record for found in read_batches(batch) for record in found.records()]
    except DecodeError as error:
        raise CorruptSnapshotError(str(error), file=path) from error
    if any(record.value is None for record in records):
        raise CorruptSnapshotError("a record without a value", file=path)
    return [bytes(record.value) for record in records if record.value is not None]


def write_voters_checkpoint(
    log_directory: Path,
    files: FileSystem,
    *,
    kraft_version: int,
    voters: VotersRecord,
    now_ms: int,
) -> None:
    """Write the snapshot 0-0 of a new dynamic quorum into a metadata log directory."""
    raw = RawSnapshotWriter(log_directory, BOOTSTRAP_SNAPSHOT_ID, files=files)
    try:
        writer = SnapshotWriter(
            raw,
            epoch=_EPOCH,
            last_contained_timestamp_ms=now_ms,
            now_ms=now_ms,
            kraft_version=kraft_version,
            voters=voters,
        )
        writer.finish(now_ms=now_ms)
        raw.freeze()
    except BaseException:
        raw.abort()
        raise
