"""Files of a metadata log: how they are found, and how their names are read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from kvorum.spark.errors import MetadataFilesError

LOG_DIRECTORY = "__cluster_metadata-0"
BOOTSTRAP_NAME = "bootstrap.checkpoint"
SEGMENT_NAME = re.compile(r"(\d{20})\.log")
SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class FileKind(Enum):
    """Kinds of files in a metadata log; the value is that of the `file_kind` column."""

    SEGMENT = "segment"
    SNAPSHOT = "snapshot"
    BOOTSTRAP = "bootstrap"


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """A file of a metadata log.

    `offset` is a segment's first offset, or the offset up to which a snapshot replaces the log;
    `epoch` belongs to a snapshot. Both are 0 where the file name does not contain them.
    """

    path: str
    kind: FileKind
    offset: int = 0
    epoch: int = 0


def find_files(path: str) -> list[MetadataFile]:
    """Return the files at `path`, in the order of the log.

    `path` is one file, a directory with segments and snapshots, or a metadata log directory: one
    that contains ``__cluster_metadata-0`` and, beside it, ``bootstrap.checkpoint``. Raises
    `MetadataFilesError` where there are no such files.
    """
    given = Path(path)
    if given.is_file():
        return [_single_file(given)]
    if not given.is_dir():
        raise MetadataFilesError(f"{path}: no such file or directory")
    inner = given / LOG_DIRECTORY
    names = [*given.iterdir(), *(inner.iterdir() if inner.is_dir() else ())]
    found = [file for file in map(classify, names) if file is not None]
    if not found:
        raise MetadataFilesError(
            f"{path}: holds neither segments nor snapshots of a metadata log, "
            f"nor a directory {LOG_DIRECTORY}"
        )
    return sorted(found, key=_log_order)


def classify(path: Path) -> MetadataFile | None:
    """Classify a file by its name; return None for a file that does not contain records."""
    if path.name == BOOTSTRAP_NAME:
        return MetadataFile(str(path), FileKind.BOOTSTRAP)
    if match := SEGMENT_NAME.fullmatch(path.name):
        return MetadataFile(str(path), FileKind.SEGMENT, int(match[1]))
    if match := SNAPSHOT_NAME.fullmatch(path.name):
        return MetadataFile(str(path), FileKind.SNAPSHOT, int(match[1]), int(match[2]))
    return None


def _single_file(path: Path) -> MetadataFile:
    """Classify a single file by its name, or a renamed one by its suffix."""
    known = classify(path)
    if known is not None:
        return known
    if path.suffix == ".checkpoint":
        return MetadataFile(str(path), FileKind.SNAPSHOT)
    if path.suffix == ".log":
        return MetadataFile(str(path), FileKind.SEGMENT)
    raise MetadataFilesError(f"{path}: neither a segment (.log) nor a snapshot (.checkpoint)")


def _log_order(file: MetadataFile) -> tuple[int, int, str]:
    """Return the sort key: bootstrap records first, then by offset."""
    return (0 if file.kind is FileKind.BOOTSTRAP else 1, file.offset, file.path)


def current_files(files: Iterable[MetadataFile]) -> tuple[MetadataFile | None, list[MetadataFile]]:
    """Return the latest snapshot, if any, and the segments, which make up the current state.

    Raises `MetadataFilesError` where offsets are missing between them.
    """
    listed = list(files)
    snapshots = [file for file in listed if file.kind is FileKind.SNAPSHOT]
    segments = sorted(
        (file for file in listed if file.kind is FileKind.SEGMENT), key=lambda file: file.offset
    )
    latest = max(snapshots, key=lambda file: (file.offset, file.epoch), default=None)
    covered_until = latest.offset if latest is not None else 0
    if segments and segments[0].offset > covered_until:
        raise MetadataFilesError(
            f"{segments[0].path}: the log begins at offset {segments[0].offset}, "
            f"but nothing here covers the offsets from {covered_until} on"
        )
    return latest, segments
