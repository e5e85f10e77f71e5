"""Fold the files of a metadata log into its state, as of the end or of a moment before."""

from pathlib import Path

from kvorum.inspection.folded_log import NOTHING_READ, FoldedLog, Provenance
from kvorum.inspection.metadata_batches import (
    Warn,
    batches_of_file,
    batches_of_segments,
    last_contained_time_ms,
)
from kvorum.inspection.metadata_files import MetadataFiles, list_metadata_files
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.moment import ENDLESS, Moment, demand_offset, end_offset_of
from kvorum.inspection.reading import Tell, no_report
from kvorum.metadata.errors import MetadataError
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.wire.errors import WireError
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from kvorum.wire.records import RecordBatch


def fold_file(
    file: Path, *, warn: Warn, tell: Tell = no_report, end_offset: int = ENDLESS
) -> FoldedLog:
    """Return what a snapshot or a segment says, from its first batch to its last whole one.

    Records from `end_offset` on are left out. Raises OSError for a file that cannot be read, and
    `MetadataSourceError`.
    """
    folded = FoldedLog()
    for batch in batches_of_file(file, warn=warn, tell=tell):
        if batch.base_offset >= end_offset:
            break
        folded = _add(folded, batch, file, end_offset=end_offset)
    if folded.provenance == NOTHING_READ:
        raise MetadataSourceError(
            f"{file}: no metadata record is in it: name a .checkpoint or .log file of a directory "
            f"{METADATA_LOG_DIRECTORY}"
        )
    return folded


def fold_snapshot(file: Path, snapshot: OffsetAndEpoch) -> FoldedLog:
    """Return what a snapshot says, as of the last record that it stands for.

    The records of a bootstrap snapshot are left out: they count once the log has them (KIP-1170).
    Raises OSError for a file that cannot be read, and `MetadataSourceError`.
    """
    batches = list(batches_of_file(file, warn=None))
    folded = FoldedLog()
    for batch in batches:
        if batch.is_control or snapshot != BOOTSTRAP_SNAPSHOT_ID:
            folded = _add(folded, batch, file)
    time_ms = last_contained_time_ms(batches)
    if time_ms is None:
        raise MetadataSourceError(f"{file}: position 0: no snapshot header: it is no snapshot")
    provenance = Provenance(snapshot.offset - 1, snapshot.epoch, time_ms)
    return FoldedLog(folded.image, provenance, snapshot)


def fold_directory(
    directory: Path, *, warn: Warn, tell: Tell = no_report, end_offset: int = ENDLESS
) -> FoldedLog:
    """Return what a metadata log directory says: its latest snapshot, and the log after that.

    `directory` is the log's own, or a node's. All of the log counts, whether committed or not: the
    files do not show it. Records from `end_offset` on, and snapshots that contain some, are left
    out. The end of the last segment is left out, with a warning, from the first batch that is not
    sound on. Raises OSError for what cannot be read, and `MetadataSourceError`.
    """
    files = list_metadata_files(directory)
    latest = max((each for each in files.snapshots if each.offset <= end_offset), default=None)
    folded = FoldedLog() if latest is None else fold_snapshot(files.snapshots[latest], latest)
    start = folded.end.offset
    _demand_segments(files, start, end_offset)
    for file, batch in batches_of_segments(files, start, warn=warn, tell=tell):
        if batch.base_offset >= end_offset:
            break
        folded = _add(folded, batch, file, start_offset=start, end_offset=end_offset)
    if folded.provenance == NOTHING_READ:
        raise MetadataSourceError(
            f"{files.directory}: no metadata record is in its snapshots and log"
        )
    return folded


def fold_until(path: Path, moment: Moment, *, warn: Warn, tell: Tell = no_report) -> FoldedLog:
    """Return what a file or a directory says as of a moment.

    Raises OSError for what cannot be read, and `MetadataSourceError`.
    """
    end_offset = end_offset_of(path, moment, warn=warn, tell=tell)
    fold = fold_directory if path.is_dir() else fold_file
    folded = fold(path, warn=warn, tell=tell, end_offset=end_offset)
    demand_offset(path, moment, folded.end.offset)
    return folded


def _demand_segments(files: MetadataFiles, start: int, end_offset: int) -> None:
    """Raise `MetadataSourceError` where the records from `start` on are in no file any more."""
    begin = files.start_offset
    if begin is None or begin <= start or end_offset <= start:
        return
    later = [each.offset for each in files.snapshots if each.offset >= begin]
    known = f"the next snapshot ends at {min(later)}" if later else "no snapshot ends later"
    raise MetadataSourceError(
        f"{files.directory}: the records from offset {start} on are missing: the log begins at "
        f"offset {begin}, and {known}"
    )


def _add(
    folded: FoldedLog,
    batch: RecordBatch,
    file: Path,
    *,
    start_offset: int = 0,
    end_offset: int = ENDLESS,
) -> FoldedLog:
    try:
        return folded.add(batch, start_offset=start_offset, end_offset=end_offset)
    except (WireError, MetadataError) as error:
        problem = f"{file}: position {batch.position}: {error}"
        raise MetadataSourceError(problem) from error
