"""Read the batches of a metadata log's files, and what their records say."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from kvorum.inspection.metadata_files import MetadataFiles
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.reading import MappedFile, Tell, no_report
from kvorum.metadata.record_frame import RecordAndVersion, decode_record
from kvorum.wire.errors import CorruptBatchError, WireError
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.records import Record, RecordBatch, decode_control_record, read_batches

Warn: TypeAlias = Callable[[str], None]
"""Takes one line about what was left out."""


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


def last_contained_time_ms(batches: Iterable[RecordBatch]) -> int | None:
    """Return the time in a snapshot's header, in milliseconds; None without a header."""
    for batch in batches:
        for record in batch.records() if batch.is_control else ():
            message = decode_control_record(record).message
            if isinstance(message, SnapshotHeaderRecord):
                return message.last_contained_log_timestamp
        break
    return None


def decoded(record: Record) -> RecordAndVersion:
    """Return what is in a metadata record; raises `WireError` or `MetadataError`."""
    if record.value is None:
        raise CorruptBatchError("record", f"no value at offset {record.offset}")
    return decode_record(bytes(record.value))
