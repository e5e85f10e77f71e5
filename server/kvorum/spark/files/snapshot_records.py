"""The control records that a snapshot, and no segment, begins and ends with."""

from __future__ import annotations

from kvorum.spark.files.log_file import FileKind
from kvorum.storage.batch_header import BatchHeader
from kvorum.storage.control_batch import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    first_control_record,
)


def is_of_other_kind(kind: FileKind, header: BatchHeader, batch: memoryview) -> bool:
    """Return whether the first batch of a file belongs into a file of another kind."""
    is_snapshot = _control_type(header, batch) == SNAPSHOT_HEADER
    return is_snapshot == (kind is FileKind.SEGMENT)


def is_footer(header: BatchHeader, batch: memoryview) -> bool:
    """Return whether a batch is the last one of a snapshot."""
    return _control_type(header, batch) == SNAPSHOT_FOOTER


def _control_type(header: BatchHeader, batch: memoryview) -> int | None:
    control = first_control_record(batch, header)
    return None if control is None else control[0]
