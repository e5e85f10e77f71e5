"""A moment in the life of a metadata log, and the offset at which it is over."""

from pathlib import Path
from typing import Final, NamedTuple

from kvorum.inspection.metadata_batches import (
    Warn,
    batches_of_file,
    batches_of_segments,
    last_contained_time_ms,
)
from kvorum.inspection.metadata_files import MetadataFiles, list_metadata_files
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.reading import Tell, no_report
from kvorum.inspection.utc_text import utc_text

ENDLESS: Final = 2**63 - 1
"""An offset behind all others."""


class Moment(NamedTuple):
    """The moment after the record at `offset`, or behind all that were written up to a time.

    `time_ms` is in milliseconds since 1970. With neither it is the end of the log.
    """

    offset: int | None = None
    time_ms: int | None = None


def end_offset_of(path: Path, moment: Moment, *, warn: Warn, tell: Tell = no_report) -> int:
    """Return the first offset after a moment of the log in a file or a directory.

    Raises OSError and `MetadataSourceError`.
    """
    if moment.offset is not None:
        return moment.offset + 1
    if moment.time_ms is None:
        return ENDLESS
    files = list_metadata_files(path) if path.is_dir() else None
    if files is None:
        batches = batches_of_file(path, warn=warn, tell=tell)
    else:
        start = files.start_offset or 0
        segments = batches_of_segments(files, start, warn=warn, tell=tell)
        batches = (batch for _, batch in segments)
    end: int | None = None
    for batch in batches:
        if batch.max_timestamp > moment.time_ms:
            if end is None and files is not None:
                end = _end_of_snapshot(files, moment.time_ms)
            if end is None:
                raise MetadataSourceError(
                    f"{path}: all of its records are younger: the first one is of "
                    f"{utc_text(batch.max_timestamp)}"
                )
            return end
        end = batch.next_offset
    return ENDLESS


def demand_offset(path: Path, moment: Moment, end_offset: int) -> None:
    """Raise `MetadataSourceError` where the offset of a moment is beyond the end of the log."""
    if moment.offset is not None and end_offset <= moment.offset:
        raise MetadataSourceError(
            f"{path}: offset {moment.offset} is not in it: it ends before offset {end_offset}"
        )


def _end_of_snapshot(files: MetadataFiles, time_ms: int) -> int | None:
    """Return the end of the last snapshot whose records had been written by a time, or None."""
    for snapshot, file in reversed(files.snapshots.items()):
        contained = last_contained_time_ms(batches_of_file(file, warn=None))
        if contained is not None and contained <= time_ms:
            return snapshot.offset
    return None
