"""The files of a metadata log, and the batches in one of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kvorum.inspection.reading import MappedFile, Tell, no_report
from kvorum.storage.names import (
    LOG_SUFFIX,
    METADATA_LOG_DIRECTORY,
    parse_offset_name,
    parse_snapshot_name,
)
from kvorum.wire.errors import WireError
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import RecordBatch, read_batches

Warn: TypeAlias = Callable[[str], None]
"""Takes one line about what was left out."""


class MetadataSourceError(Exception):
    """A source of metadata cannot be read; the text is one line."""


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


def batches_of_file(
    file: Path, *, warn: Warn | None, tell: Tell = no_report, is_sound_part_enough: bool = False
) -> Iterator[RecordBatch]:
    """Yield the batches of a file; only where a warning can be given it may end within one.

    With `is_sound_part_enough` it ends at the first batch that is not sound, with a warning too.
    Raises OSError and `MetadataSourceError`.
    """
    mapped = MappedFile(file)
    position = 0
    try:
        for batch in read_batches(mapped.view, is_cut_allowed=warn is not None):
            if is_sound_part_enough:
                batch.verify()
            yield batch
            position = batch.position + batch.size
            mapped.release(position)
            tell(file, position)
    except WireError as error:
        if warn is None or not is_sound_part_enough:
            raise MetadataSourceError(f"{file}: position {position}: {error}") from error
    rest = len(mapped.view) - position
    if rest and warn is not None:
        warn(f"{file}: position {position}: the last {rest} bytes are no whole batch: left out")


def batches_of_segments(
    files: MetadataFiles, start: int, *, warn: Warn, tell: Tell = no_report
) -> Iterator[tuple[Path, RecordBatch]]:
    """Yield the batches behind offset `start`, without a gap between them.

    The end of the last segment is left out, with a warning, from the first batch that is not sound
    on. Raises OSError and `MetadataSourceError`.
    """
    first = max((base for base in files.segments if base <= start), default=0)
    last = next(reversed(files.segments), None)
    for base, file in files.segments.items():
        if base < first:
            continue
        is_last = base == last
        batches = batches_of_file(
            file, warn=warn if is_last else None, tell=tell, is_sound_part_enough=is_last
        )
        for batch in batches:
            if batch.next_offset <= start:
                continue
            if batch.base_offset > start:
                raise MetadataSourceError(
                    f"{file}: position {batch.position}: offset {batch.base_offset} follows where "
                    f"{start} belongs: the records between them are missing"
                )
            yield file, batch
            start = batch.next_offset
