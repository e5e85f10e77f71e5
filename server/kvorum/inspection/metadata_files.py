"""The files of a metadata log: its snapshots and its segments."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.storage.names import (
    LOG_SUFFIX,
    METADATA_LOG_DIRECTORY,
    parse_offset_name,
    parse_snapshot_name,
)
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

LEVELS_BELOW: Final = 2
"""The depth of the search for logs below a directory without one, as of `kvorum dev --data`."""
SEARCHED_MAX: Final = 10_000
"""The number of directories that are searched; a message is not worth more time."""


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """The whole snapshots of a metadata log, and its segments by base offset, both in order."""

    directory: Path
    snapshots: dict[OffsetAndEpoch, Path]
    segments: dict[int, Path]

    @property
    def start_offset(self) -> int | None:
        """The offset that the first segment begins with; None without segments."""
        return next(iter(self.segments), None)


def list_metadata_files(directory: Path) -> MetadataFiles:
    """Return the files in a metadata log's directory, or in a node's.

    Raises OSError, and `MetadataSourceError` where there is no metadata log.
    """
    if (directory / METADATA_LOG_DIRECTORY).is_dir():
        directory /= METADATA_LOG_DIRECTORY
    names = sorted(path.name for path in directory.iterdir())
    snapshots = [each for each in map(parse_snapshot_name, names) if each is not None]
    whole = sorted(
        (each.id, each.name) for each in snapshots if not (each.is_partial or each.is_deleted)
    )
    segments = [
        (each[0], name)
        for each, name in zip(map(parse_offset_name, names), names, strict=True)
        if each is not None and each[1] == LOG_SUFFIX
    ]
    if not (whole or segments or directory.name == METADATA_LOG_DIRECTORY):
        raise no_log_error(directory)
    return MetadataFiles(
        directory,
        {snapshot: directory / name for snapshot, name in whole},
        {base: directory / name for base, name in segments},
    )


def no_log_error(directory: Path) -> MetadataSourceError:
    """Return the error of a directory without a metadata log; it names one below that has it."""
    below = _searched(directory, LEVELS_BELOW)
    nodes = [path for path in islice(below, SEARCHED_MAX) if _has_log(path)]
    problem = f"{directory}: no metadata log is in it"
    if not nodes:
        return MetadataSourceError(f"{problem}, and none is in the directories below")
    others = f", or another one: {len(nodes)} of them have a log" if len(nodes) > 1 else ""
    return MetadataSourceError(f"{problem}: name {nodes[0]} below it{others}")


def _searched(directory: Path, levels: int) -> Iterator[Path]:
    """Yield the directories below one in the order of their names, as far as they can be read."""
    try:
        children = sorted(path for path in directory.iterdir() if path.is_dir())
    except OSError:
        return
    for child in children:
        yield child
        if levels > 1:
            yield from _searched(child, levels - 1)


def _has_log(directory: Path) -> bool:
    try:
        return (directory / METADATA_LOG_DIRECTORY).is_dir()
    except OSError:
        return False
