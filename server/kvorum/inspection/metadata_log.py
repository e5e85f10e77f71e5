"""A metadata log as files: its batches, the records in them, and the image as of any offset.

Records are read one by one for a history that begins as early as the files do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from kvorum.inspection.reading import MappedFile, Tell, no_report
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion, decode_record
from kvorum.spark.history import LogRecord, MetadataHistory
from kvorum.storage.names import (
    LOG_SUFFIX,
    METADATA_LOG_DIRECTORY,
    parse_offset_name,
    parse_snapshot_name,
)
from kvorum.wire.errors import CorruptBatchError, WireError
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from kvorum.wire.records import Record, RecordBatch, decode_control_record, read_batches

_YEARS_PER_CYCLE: Final = 400
_CYCLE_MS: Final = 146_097 * 24 * 60 * 60 * 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Warn: TypeAlias = Callable[[str], None]
"""Takes one line about what was left out."""
BEGINNING: Final = OffsetAndEpoch(0, 0)
ENDLESS: Final = 2**63 - 1
"""An offset behind all others."""


def utc_text(timestamp_ms: int) -> str:
    """Return a time as ISO 8601 in UTC, without zeros at the end of the fraction.

    `timestamp_ms` is in milliseconds since 1970.
    """
    # Python's calendar ends at the year 9999; the days repeat every 400 years.
    cycles, within_ms = divmod(timestamp_ms, _CYCLE_MS)
    moment = _EPOCH + timedelta(milliseconds=within_ms)
    fraction = f".{moment.microsecond // 1000:03}".rstrip("0").rstrip(".")
    year = moment.year + _YEARS_PER_CYCLE * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


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
        warn(
            f"{file}: position {position}: the last {rest} bytes are left out, as of a write that "
            "was not finished; if they are damaged, kvorum log check shows it"
        )


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


@dataclass(frozen=True, slots=True)
class Provenance:
    """The last offset, epoch and time that an image contains."""

    offset: int
    epoch: int
    timestamp_ms: int


NOTHING_READ: Final = Provenance(-1, -1, -1)


@dataclass(frozen=True, slots=True)
class FoldedLog:
    """The state after some batches; records of an open transaction are in `image` only.

    `end` is where the next batch begins, with the epoch of the one before it.
    """

    image: MetadataImage = field(default_factory=MetadataImage)
    provenance: Provenance = NOTHING_READ
    end: OffsetAndEpoch = BEGINNING

    def add(
        self, batch: RecordBatch, *, start_offset: int = 0, end_offset: int = ENDLESS
    ) -> FoldedLog:
        """Return the state after one more batch, without its records outside of the two offsets.

        Raises `WireError` and `MetadataError` for a batch that is damaged, or cannot follow.
        """
        batch.verify()
        next_offset = min(batch.next_offset, end_offset)
        end = OffsetAndEpoch(next_offset, batch.partition_leader_epoch)
        if batch.is_control:
            return replace(self, end=end)
        was_open = self.image.transaction is not None
        image = self.image.apply_all(
            (*decoded(record), record.offset)
            for record in batch.records()
            if start_offset <= record.offset < end_offset
        )
        begun, last_offset = image.transaction, next_offset - 1
        if begun is not None:
            if was_open or begun.begin_offset == batch.base_offset:
                return FoldedLog(image, self.provenance, end)
            last_offset = begun.begin_offset - 1
        return FoldedLog(image, Provenance(last_offset, end.epoch, batch.max_timestamp), end)


def decoded(record: Record) -> RecordAndVersion:
    """Return what is in a metadata record; raises `WireError` or `MetadataError`."""
    if record.value is None:
        raise CorruptBatchError("record", f"no value at offset {record.offset}")
    return decode_record(bytes(record.value))


def fold_file(
    file: Path, *, warn: Warn, tell: Tell = no_report, end_offset: int = ENDLESS
) -> FoldedLog:
    """Return what a snapshot or a segment says, from its first batch to its last whole one.

    Records from `end_offset` on are left out. Raises OSError for a file that cannot be read, and
    `MetadataSourceError`.
    """
    folded = FoldedLog()
    for batch in batches_of_file(file, warn=warn, tell=tell):
        if batch.base_offset >= end_offset:
            break
        folded = _add(folded, batch, file, end_offset=end_offset)
    if folded.provenance == NOTHING_READ:
        raise MetadataSourceError(
            f"{file}: no metadata record is in it: name a .checkpoint or .log file of a directory "
            f"{METADATA_LOG_DIRECTORY}"
        )
    return folded


def fold_snapshot(file: Path, snapshot: OffsetAndEpoch) -> FoldedLog:
    """Return what a snapshot says, as of the last record that it stands for.

    The records of a bootstrap snapshot are left out: they count once the log has them (KIP-1170).
    Raises OSError for a file that cannot be read, and `MetadataSourceError`.
    """
    batches = list(batches_of_file(file, warn=None))
    folded = FoldedLog()
    for batch in batches:
        if batch.is_control or snapshot != BOOTSTRAP_SNAPSHOT_ID:
            folded = _add(folded, batch, file)
    time_ms = last_contained_time_ms(batches)
    if time_ms is None:
        raise MetadataSourceError(f"{file}: position 0: no snapshot header: it is no snapshot")
    provenance = Provenance(snapshot.offset - 1, snapshot.epoch, time_ms)
    return FoldedLog(folded.image, provenance, snapshot)


def fold_directory(
    directory: Path, *, warn: Warn, tell: Tell = no_report, end_offset: int = ENDLESS
) -> FoldedLog:
    """Return what a metadata log directory says: its latest snapshot, and the log after that.

    `directory` is the log's own, or a node's. All of the log counts, whether committed or not: the
    files do not show it. Records from `end_offset` on, and snapshots that contain some, are left
    out. The end of the last segment is left out, with a warning, from the first batch that is not
    sound on. Raises OSError for what cannot be read, and `MetadataSourceError`.
    """
    files = list_metadata_files(directory)
    latest = max((each for each in files.snapshots if each.offset <= end_offset), default=None)
    folded = FoldedLog() if latest is None else fold_snapshot(files.snapshots[latest], latest)
    start = folded.end.offset
    _demand_segments(files, start, end_offset)
    for file, batch in batches_of_segments(files, start, warn=warn, tell=tell):
        if batch.base_offset >= end_offset:
            break
        folded = _add(folded, batch, file, start_offset=start, end_offset=end_offset)
    if folded.provenance == NOTHING_READ:
        raise MetadataSourceError(
            f"{files.directory}: no metadata record is in its snapshots and log"
        )
    return folded


def last_contained_time_ms(batches: Iterable[RecordBatch]) -> int | None:
    """Return the time in a snapshot's header, in milliseconds; None without a header."""
    for batch in batches:
        for record in batch.records() if batch.is_control else ():
            message = decode_control_record(record).message
            if isinstance(message, SnapshotHeaderRecord):
                return message.last_contained_log_timestamp
        break
    return None


def _demand_segments(files: MetadataFiles, start: int, end_offset: int) -> None:
    """Raise `MetadataSourceError` where the records from `start` on are in no file any more."""
    begin = files.start_offset
    if begin is None or begin <= start or end_offset <= start:
        return
    later = [each.offset for each in files.snapshots if each.offset >= begin]
    known = f"the next snapshot ends at {min(later)}" if later else "no snapshot ends later"
    raise MetadataSourceError(
        f"{files.directory}: the records from offset {start} on are missing: the log begins at "
        f"offset {begin}, and {known}"
    )


def _add(
    folded: FoldedLog,
    batch: RecordBatch,
    file: Path,
    *,
    start_offset: int = 0,
    end_offset: int = ENDLESS,
) -> FoldedLog:
    try:
        return folded.add(batch, start_offset=start_offset, end_offset=end_offset)
    except (WireError, MetadataError) as error:
        problem = f"{file}: position {batch.position}: {error}"
        raise MetadataSourceError(problem) from error


class Moment(NamedTuple):
    """The moment after the record at `offset`, or behind all that were written up to a time.

    `time_ms` is in milliseconds since 1970. With neither it is the end of the log.
    """

    offset: int | None = None
    time_ms: int | None = None


def fold_until(path: Path, moment: Moment, *, warn: Warn, tell: Tell = no_report) -> FoldedLog:
    """Return what a file or a directory says as of a moment.

    Raises OSError for what cannot be read, and `MetadataSourceError`.
    """
    end_offset = end_offset_of(path, moment, warn=warn, tell=tell)
    fold = fold_directory if path.is_dir() else fold_file
    folded = fold(path, warn=warn, tell=tell, end_offset=end_offset)
    demand_offset(path, moment, folded.end.offset)
    return folded


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


class HistorySource(NamedTuple):
    """A history that begins with a snapshot or with nothing, and the records to add to it."""

    history: MetadataHistory
    records: Iterator[LogRecord]


def history_source(path: Path, *, warn: Warn, tell: Tell = no_report) -> HistorySource:
    """Return the longest history that a directory has, or the one in a single file.

    Raises OSError for what cannot be read, and `MetadataSourceError`; the records do too.
    """
    if not path.is_dir():
        snapshot = parse_snapshot_name(path.name)
        if snapshot is not None:
            return HistorySource(_from_snapshot(path, snapshot.id), iter(()))
        batches = ((path, batch) for batch in batches_of_file(path, warn=warn, tell=tell))
        return HistorySource(MetadataHistory(), _records(batches))
    files = list_metadata_files(path)
    if files.start_offset == 0:
        segments = batches_of_segments(files, 0, warn=warn, tell=tell)
        return HistorySource(MetadataHistory(), _records(segments))
    first = _first_snapshot(files)
    records = _records(batches_of_segments(files, first.offset, warn=warn, tell=tell))
    return HistorySource(_from_snapshot(files.snapshots[first], first), records)


def _first_snapshot(files: MetadataFiles) -> OffsetAndEpoch:
    """Return the earliest snapshot that the log goes on from."""
    start = files.start_offset
    for snapshot in files.snapshots:
        if start is None or snapshot.offset >= start:
            return snapshot
    raise MetadataSourceError(
        f"{files.directory}: no snapshot is there that the log goes on from"
        if files.segments
        else f"{files.directory}: no metadata record is in its snapshots and log"
    )


def _from_snapshot(file: Path, snapshot: OffsetAndEpoch) -> MetadataHistory:
    records = _records((file, batch) for batch in batches_of_file(file, warn=None))
    return MetadataHistory.from_snapshot(records, end_offset=snapshot.offset, epoch=snapshot.epoch)


def _records(batches: Iterator[tuple[Path, RecordBatch]]) -> Iterator[LogRecord]:
    for file, batch in batches:
        try:
            batch.verify()
            yield from _records_of(batch)
        except (WireError, MetadataError) as error:
            problem = f"{file}: position {batch.position}: {error}"
            raise MetadataSourceError(problem) from error


def _records_of(batch: RecordBatch) -> Iterator[LogRecord]:
    epoch = batch.partition_leader_epoch
    for record in batch.records():
        if batch.is_control:
            _, message, version = decode_control_record(record)
        else:
            message, version = decoded(record)
        yield LogRecord(record.offset, epoch, record.timestamp, message, version)
