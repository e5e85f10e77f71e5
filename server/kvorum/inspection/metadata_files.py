"""The files of a metadata log: its snapshots and its segments."""

from dataclasses import dataclass
from pathlib import Path

from kvorum.storage.names import (
    LOG_SUFFIX,
    METADATA_LOG_DIRECTORY,
    parse_offset_name,
    parse_snapshot_name,
)
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


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
    """Return the files in a metadata log's directory, or in a node's; raises OSError."""
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
    return MetadataFiles(
        directory,
        {snapshot: directory / name for snapshot, name in whole},
        {base: directory / name for base, name in segments},
    )
