"""Snapshots of the node's state: written to files, and loaded from them."""

from collections.abc import Iterable, Iterator, Sequence

from kvorum.node.raft.control_records import quorum_control_records
from kvorum.node.raft.directory import SnapshotControls, batches_of
from kvorum.node.raft.listener import LoadedSnapshot
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshot_reader import (
    check_snapshot,
    read_last_contained_log_timestamp,
    read_snapshot_batches,
)
from kvorum.storage.metadata_log.snapshots import RawSnapshotReader, RawSnapshotWriter
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    build_control_batch,
    build_data_batch,
)


def write_snapshot(
    writer: RawSnapshotWriter,
    *,
    controls: SnapshotControls,
    last_contained_log_timestamp_ms: int,
    values: Iterable[Sequence[bytes]],
    now_ms: int,
) -> None:
    """Write header, data and footer, and freeze the snapshot; abort it if that fails.

    Its offsets begin at 0. Runs in a thread of its own.
    """
    try:
        _write_parts(writer, controls, last_contained_log_timestamp_ms, values, now_ms)
        writer.freeze()
    except BaseException:
        writer.abort()
        raise


def _write_parts(
    writer: RawSnapshotWriter,
    controls: SnapshotControls,
    last_contained_log_timestamp_ms: int,
    values: Iterable[Sequence[bytes]],
    now_ms: int,
) -> None:
    epoch = writer.id.epoch
    header = SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=last_contained_log_timestamp_ms
    )
    first = [
        ControlRecord(ControlRecordType.SNAPSHOT_HEADER, header),
        *quorum_control_records(controls.kraft_version, controls.voters),
    ]
    writer.append(build_control_batch(first, base_offset=0, epoch=epoch, timestamp_ms=now_ms))
    offset = len(first)
    for batch in values:
        if not batch:
            continue
        data = build_data_batch(batch, base_offset=offset, epoch=epoch, timestamp_ms=now_ms)
        writer.append(data)
        offset += len(batch)
    footer = [ControlRecord(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))]
    writer.append(build_control_batch(footer, base_offset=offset, epoch=epoch, timestamp_ms=now_ms))


def check_and_freeze(writer: RawSnapshotWriter) -> None:
    """Freeze a complete fetched snapshot; else abort it and raise CorruptSnapshotError."""
    try:
        check_snapshot(writer)
        writer.freeze()
    except BaseException:
        writer.abort()
        raise


def load_snapshot(log: MetadataLog, snapshot_id: OffsetAndEpoch) -> LoadedSnapshot | None:
    """Return a snapshot for the listener; None if it does not exist. Raises StorageError.

    The file is closed when the values are exhausted or garbage-collected.
    """
    timestamp = read_last_contained_log_timestamp(log.snapshots, snapshot_id)
    reader = log.snapshots.open(snapshot_id)
    if reader is None:
        return None
    return LoadedSnapshot(
        end_offset=snapshot_id.offset,
        epoch=snapshot_id.epoch,
        last_contained_log_timestamp_ms=-1 if timestamp is None else timestamp,
        values=_values(log, reader),
    )


def _values(log: MetadataLog, reader: RawSnapshotReader) -> Iterator[tuple[bytes, ...]]:
    try:
        for header, data in read_snapshot_batches(reader):
            if header.is_control:
                continue
            for batch in batches_of(log, data):
                yield tuple(record.value or b"" for record in batch.records())
    finally:
        reader.close()
