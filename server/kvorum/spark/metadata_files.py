"""The files of a metadata log: which a path means, and what their names say."""

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
    """What a file of a metadata log is; the value is what the `file_kind` column holds."""

    SEGMENT = "segment"
    SNAPSHOT = "snapshot"
    BOOTSTRAP = "bootstrap"


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """A file of a metadata log.

    `offset` is a segment's first offset, or the offset up to which a snapshot stands in for the
    log; `epoch` belongs to a snapshot. Both are 0 where the name does not tell.
    """

    path: str
    kind: FileKind
    offset: int = 0
    epoch: int = 0


def find_files(path: str) -> list[MetadataFile]:
    """Return the files that `path` means, in the order of the log.

    `path` is one file, a directory with segments and snapshots, or a metadata log directory: one
    that holds ``__cluster_metadata-0`` and, beside it, ``bootstrap.checkpoint``. Raises
    `MetadataFilesError` where there is nothing of the kind.
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
    """Return what a file's name says of it; None for a file that holds no records."""
    if path.name == BOOTSTRAP_NAME:
        return MetadataFile(str(path), FileKind.BOOTSTRAP)
    if match := SEGMENT_NAME.fullmatch(path.name):
        return MetadataFile(str(path), FileKind.SEGMENT, int(match[1]))
    if match := SNAPSHOT_NAME.fullmatch(path.name):
        return MetadataFile(str(path), FileKind.SNAPSHOT, int(match[1]), int(match[2]))
    return None


def _single_file(path: Path) -> MetadataFile:
    """Accept a file that was renamed as well, by its ending."""
    known = classify(path)
    if known is not None:
        return known
    if path.suffix == ".checkpoint":
        return MetadataFile(str(path), FileKind.SNAPSHOT)
    if path.suffix == ".log":
        return MetadataFile(str(path), FileKind.SEGMENT)
    raise MetadataFilesError(f"{path}: neither a segment (.log) nor a snapshot (.checkpoint)")


def _log_order(file: MetadataFile) -> tuple[int, int, str]:
    """Bootstrap records first, then by offset."""
    return (0 if file.kind is FileKind.BOOTSTRAP else 1, file.offset, file.path)


def current_files(files: Iterable[MetadataFile]) -> tuple[MetadataFile | None, list[MetadataFile]]:
    """Return the latest snapshot, if any, and the segments: what the present state is made of.

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
