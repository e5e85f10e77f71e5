"""A snapshot begins with its header record and ends with its footer record, and no segment does.

Where the first sound batch of a file is another one, or that of a segment is such, nothing of the
file is used.
"""

from __future__ import annotations

from kvorum.spark.files.batch_places import EntryHeader
from kvorum.spark.files.legacy_header import LegacyHeader
from kvorum.spark.files.log_file import FileKind
from kvorum.storage.log.batch_header import BatchHeader
from kvorum.storage.metadata_log.control_batch import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    first_control_record,
)


def is_of_other_kind(kind: FileKind, header: BatchHeader, batch: memoryview) -> bool:
    """Return whether the first batch of a file belongs into a file of another kind."""
    is_snapshot = _control_type(header, batch) == SNAPSHOT_HEADER
    return is_snapshot == (kind is FileKind.SEGMENT)


class SnapshotRules:
    """`is_foreign` says that the file is of the other kind, as its first batch tells."""

    def __init__(self, kind: FileKind, *, has_end: bool) -> None:
        self.is_foreign = False
        self._kind = kind
        self._has_end = has_end
        self._is_complete = False

    def problem(self, header: EntryHeader, position: int, batch: memoryview) -> str | None:
        """Return why a sound batch at byte `position` is not one of such a file, or None."""
        if isinstance(header, LegacyHeader):
            return None
        if position == 0:
            self.is_foreign = is_of_other_kind(self._kind, header, batch)
        is_segment = self._kind is FileKind.SEGMENT
        if self.is_foreign:
            return (
                "the file is a snapshot"
                if is_segment
                else "no header record of a snapshot comes first"
            )
        if is_segment:
            return None
        if self._is_complete:
            return "a batch behind the snapshot's footer record"
        self._is_complete = _control_type(header, batch) == SNAPSHOT_FOOTER
        return None

    def problem_at_end(self) -> str | None:
        """Return what a snapshot's last range lacks, or None."""
        if self._kind is FileKind.SEGMENT or not self._has_end or self._is_complete:
            return None
        return "the snapshot does not end with its footer record"


def _control_type(header: BatchHeader, batch: memoryview) -> int | None:
    control = first_control_record(batch, header)
    return None if control is None else control[0]
