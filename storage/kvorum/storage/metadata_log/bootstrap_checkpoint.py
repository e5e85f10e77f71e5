"""The file that a new cluster starts from: the snapshot at offset 0, the bootstrap snapshot.

The snapshot ``0-0`` in the metadata log's directory holds the bootstrap records, which the first
active controller writes into the log, and the first voters and kraft.version of a dynamic quorum
(KIP-1170). Directories that a release before Kafka 4.4 has formatted hold the bootstrap records in
``bootstrap.checkpoint`` of the data directory, which has the form of a snapshot too.
"""

from collections.abc import Iterable
from pathlib import Path

from kvorum.storage.errors import CorruptSnapshotError
from kvorum.storage.files import FileSystem, read_if_there
from kvorum.storage.metadata_log.snapshot_reader import SnapshotInMemory, read_snapshot_batches
from kvorum.storage.metadata_log.snapshot_writer import SnapshotWriter
from kvorum.storage.metadata_log.snapshots import RawSnapshotWriter
from kvorum.wire.errors import DecodeError
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID
from kvorum.wire.records import read_batches

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"


def read_bootstrap_records(path: Path, files: FileSystem) -> list[bytes] | None:
    """Return the framed records of a bootstrap snapshot, or None without such a file.

    Raises CorruptSnapshotError for a file that is damaged or incomplete.
    """
    data = read_if_there(files, path)
    if data is None:
        return None
    values: list[bytes] = []
    for header, batch in read_snapshot_batches(SnapshotInMemory(path, data)):
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


def write_bootstrap_snapshot(
    log_directory: Path,
    files: FileSystem,
    *,
    values: Iterable[bytes] = (),
    kraft_version: int,
    voters: VotersRecord | None,
    now_ms: int,
) -> None:
    """Write the snapshot 0-0 of a new cluster into a metadata log directory.

    `values` are the framed bootstrap records. `voters` are those of a dynamic quorum, None where
    the configuration names the voters or this node has to join them.
    """
    raw = RawSnapshotWriter(log_directory, BOOTSTRAP_SNAPSHOT_ID, files=files)
    try:
        writer = SnapshotWriter(
            raw,
            epoch=BOOTSTRAP_SNAPSHOT_ID.epoch,
            last_contained_timestamp_ms=now_ms,
            now_ms=now_ms,
            kraft_version=kraft_version,
            voters=voters,
        )
        writer.append(values, now_ms=now_ms)
        writer.finish(now_ms=now_ms)
        raw.freeze()
    except BaseException:
        raw.abort()
        raise
