"""The differences of two logs: where replicas part and end, and the paths of two images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kvorum.inspection.image_entries import image_entries
from kvorum.inspection.log_check.findings import Findings, Rule
from kvorum.inspection.log_check.log_units import read_directory
from kvorum.inspection.log_check.replica_check import Replica, check_replicas
from kvorum.inspection.metadata_log.folded_log import FoldedLog
from kvorum.inspection.telling import Tell
from kvorum.spark.files.damage import Damage
from kvorum.storage.names import METADATA_LOG_DIRECTORY


def log_directory(path: Path) -> Path:
    """Return the metadata log's directory for that of a node; any other one is a log's own."""
    below = path / METADATA_LOG_DIRECTORY
    return below if below.is_dir() else path


def is_metadata_log(path: Path) -> bool:
    """Return whether a path is a file, or the directory of a metadata log or of its node."""
    return not path.is_dir() or log_directory(path).name == METADATA_LOG_DIRECTORY


class LogReading(NamedTuple):
    """The end of a log, and a line for each damage in it."""

    end_offset: int
    damages: tuple[str, ...]


def read_through(path: Path, *, tell: Tell) -> LogReading:
    """Read the log in a directory from its beginning to its end; raises OSError."""
    end = 0
    damages: list[str] = []
    for file, item in read_directory(log_directory(path)):
        tell(file, item.position)
        if isinstance(item, Damage):
            damages.append(f"{item.path}: {item.text}")
        else:
            end = item.last_offset + 1
    return LogReading(end, tuple(damages))


def log_differences(first: Path, second: Path) -> Iterator[str]:
    """Yield the first difference between the logs in two directories, once for each of them."""
    findings = Findings()
    replicas = [
        Replica(
            directory=log_directory(path),
            is_metadata=log_directory(path).name == METADATA_LOG_DIRECTORY,
            committed=0,
            voters=frozenset(),
        )
        for path in (first, second)
    ]
    check_replicas(replicas, findings)
    for finding in findings.all:
        if finding.rule is Rule.DIVERGENCE:
            yield finding.text


class Change(NamedTuple):
    """A path whose text differs; None where it is missing."""

    path: str
    before: str | None
    after: str | None


def image_changes(before: FoldedLog, after: FoldedLog) -> Iterator[Change]:
    """Yield the paths that differ: those of the first image in its order, then the others."""
    old = dict(image_entries(before))
    new = dict(image_entries(after))
    for path, value in old.items():
        if new.get(path) != value:
            yield Change(path, value, new.get(path))
    for path, value in new.items():
        if path not in old:
            yield Change(path, None, value)
