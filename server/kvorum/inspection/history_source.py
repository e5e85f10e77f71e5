"""The source of a history that begins as early as the files of a metadata log do."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kvorum.history import LogRecord, MetadataHistory
from kvorum.inspection.metadata_batches import Warn, batches_of_file, batches_of_segments, decoded
from kvorum.inspection.metadata_files import MetadataFiles, list_metadata_files
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.reading import Tell, no_report
from kvorum.metadata.errors import MetadataError
from kvorum.storage.names import parse_snapshot_name
from kvorum.wire.errors import WireError
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import RecordBatch, decode_control_record


class HistorySource(NamedTuple):
    """A history that begins with a snapshot or with nothing, and the records to add to it."""

    history: MetadataHistory
    records: Iterator[LogRecord]


def history_source(path: Path, *, warn: Warn, tell: Tell = no_report) -> HistorySource:
    """Return the longest history that a directory has, or the one in a single file.

    Raises OSError for what cannot be read, and `MetadataSourceError`; the records do too.
    """
    if not path.is_dir():
        snapshot = parse_snapshot_name(path.name)
        if snapshot is not None:
            return HistorySource(_from_snapshot(path, snapshot.id), iter(()))
        batches = ((path, batch) for batch in batches_of_file(path, warn=warn, tell=tell))
        return HistorySource(MetadataHistory(), _records(batches))
    files = list_metadata_files(path)
    if files.start_offset == 0:
        segments = batches_of_segments(files, 0, warn=warn, tell=tell)
        return HistorySource(MetadataHistory(), _records(segments))
    first = _first_snapshot(files)
    records = _records(batches_of_segments(files, first.offset, warn=warn, tell=tell))
    return HistorySource(_from_snapshot(files.snapshots[first], first), records)


def _first_snapshot(files: MetadataFiles) -> OffsetAndEpoch:
    """Return the earliest snapshot that the log goes on from."""
    start = files.start_offset
    for snapshot in files.snapshots:
        if start is None or snapshot.offset >= start:
            return snapshot
    raise MetadataSourceError(
        f"{files.directory}: no snapshot is there that the log goes on from"
        if files.segments
        else f"{files.directory}: no metadata record is in its snapshots and log"
    )


def _from_snapshot(file: Path, snapshot: OffsetAndEpoch) -> MetadataHistory:
    records = _records((file, batch) for batch in batches_of_file(file, warn=None))
    return MetadataHistory.from_snapshot(records, end_offset=snapshot.offset, epoch=snapshot.epoch)


def _records(batches: Iterator[tuple[Path, RecordBatch]]) -> Iterator[LogRecord]:
    for file, batch in batches:
        try:
            batch.verify()
            yield from _records_of(batch)
        except (WireError, MetadataError) as error:
            problem = f"{file}: position {batch.position}: {error}"
            raise MetadataSourceError(problem) from error


def _records_of(batch: RecordBatch) -> Iterator[LogRecord]:
    epoch = batch.partition_leader_epoch
    for record in batch.records():
        if batch.is_control:
            _, message, version = decode_control_record(record)
        else:
            message, version = decoded(record)
        yield LogRecord(record.offset, epoch, record.timestamp, message, version)
