"""Which files of a metadata log make up its present state."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.spark.errors import LogFilesError
from kvorum.spark.files.log_file import FileKind, LogFile


def current_files(files: Iterable[LogFile]) -> tuple[LogFile | None, list[LogFile]]:
    """Return the latest snapshot, if any, and the segments, which make up the current state.

    Raises `LogFilesError` where offsets are missing between them.
    """
    listed = list(files)
    snapshots = [file for file in listed if file.kind is FileKind.SNAPSHOT]
    segments = sorted(
        (file for file in listed if file.kind is FileKind.SEGMENT),
        key=lambda file: file.offset or 0,
    )
    latest = max(snapshots, key=lambda file: (file.offset or 0, file.epoch), default=None)
    covered_until = (latest.offset or 0) if latest is not None else 0
    if segments and (segments[0].offset or 0) > covered_until:
        raise LogFilesError(
            f"{segments[0].path}: the log begins at offset {segments[0].offset}, "
            f"but nothing here covers the offsets from {covered_until} on"
        )
    return latest, segments
