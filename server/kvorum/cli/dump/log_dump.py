"""The dump of a segment or a snapshot, line by line, or in parts that are dumped each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NamedTuple

from kvorum.cli.dump.decoders import Decoder, MetadataDecoder
from kvorum.cli.dump.log_text import (
    INDENT,
    LOG_BYTES_MAX,
    RecordLines,
    entry_line,
    is_plain,
    plain_batches,
    records_with_texts,
)
from kvorum.cli.dump.metadata_texts import UnreadableRecordError
from kvorum.inspection.reading import MappedFile
from kvorum.wire.records.batch import LENGTH_FIELD_END
from kvorum.wire.records.legacy import Entry, read_entries

BEFORE_FIRST = -1
PART_BYTES: Final = 1 << 17
"""The least size of a part. Its text, about five times as long, fits into a processor's cache."""
# Batches, and messages of formats 0 and 1, begin with an offset and the length of what follows.
_LENGTH: Final = Struct(">8xi")


@dataclass(slots=True)
class OffsetGaps:
    """The pairs of offsets that are neighbours in a log, or in a part of it, but not consecutive.

    `last` is the offset of the last record so far: `BEFORE_FIRST` before the first of a log, None
    before the first of a part, whose neighbour is in another one.
    """

    last: int | None = BEFORE_FIRST
    pairs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    first_of_part: int | None = None

    def note(self, first: int, last: int) -> None:
        """Go on with records whose offsets are consecutive, from `first` to `last`."""
        if self.last is None:
            self.first_of_part = first
        elif first != self.last + 1:
            self.pairs.append((self.last, first))
        self.last = last

    def go_on(self, part: OffsetGaps) -> None:
        """Go on with what was noted of the next part."""
        if part.first_of_part is None or part.last is None:
            return
        self.note(part.first_of_part, part.last)
        self.pairs += part.pairs


class Part(NamedTuple):
    """Positions in a file: where a part of a log begins, and where the next one does."""

    begin: int
    end: int


def log_parts(data: memoryview, part_bytes: int = PART_BYTES) -> Iterator[Part]:
    """Yield the parts of a log, each of whole batches, by their lengths alone.

    The last part has all that is after the first length that cannot be right.
    """
    end = len(data)
    # Behind it no batch can begin.
    last = end - _LENGTH.size
    begin = position = 0
    next_look = min(part_bytes, last + 1)
    unpack = _LENGTH.unpack_from
    while position <= last:
        (length,) = unpack(data, position)
        if length <= 0:
            break
        position += LENGTH_FIELD_END + length
        if position >= next_look:
            if position > last:
                break
            yield Part(begin, position)
            begin = position
            next_look = min(begin + part_bytes, last + 1)
    yield Part(begin, end)


def no_position(position: int) -> None:
    """Take in how far a log was dumped, and do nothing."""


@dataclass(slots=True)
class LogDump:
    """A printer of one log, with the gaps that it found.

    `decoder` is None where contents are not printed. `report` takes in how far.
    """

    file_name: str
    is_deep: bool = False
    decoder: Decoder | None = None
    skips_metadata: bool = False
    bytes_max: int = LOG_BYTES_MAX
    report: Callable[[int], None] = no_position
    gaps: OffsetGaps = field(default_factory=OffsetGaps)

    def shown(self, log: MappedFile) -> memoryview:
        """Return what is printed of a log's bytes."""
        return log.view[: self.bytes_max]

    def lines(self, log: MappedFile) -> Iterator[str]:
        """Yield a line for each batch and, if `is_deep`, one for each record; some at once."""
        for part in log_parts(self.shown(log)):
            yield from self.part_lines(log, part)
            log.release(part.end)
            self.report(part.end)

    def part_lines(self, log: MappedFile, part: Part) -> Iterator[str]:
        """Yield the lines that a part of the log has."""
        shown = self.shown(log)[: part.end]
        position = part.begin
        is_quick = not self.is_deep or isinstance(self.decoder, MetadataDecoder)
        is_at_end = False
        while not is_at_end:
            if is_quick:
                position = yield from plain_batches(shown, position, self._plain_record_lines())
            is_at_end = True
            for entry in read_entries(shown, begin=position, is_cut_allowed=True):
                yield entry_line(entry)
                if self.is_deep:
                    yield from self._record_lines(entry)
                position = entry.position + entry.size
                if is_quick and is_plain(entry):
                    is_at_end = False
                    break
        trailing = part.end - position
        if trailing > 0 and self.bytes_max == LOG_BYTES_MAX:
            yield f"Found {trailing} invalid bytes at the end of {self.file_name}"

    def _plain_record_lines(self) -> RecordLines | None:
        """Return what makes the lines of the records in plain batches."""
        if not isinstance(self.decoder, MetadataDecoder):
            return None
        texts = self.decoder.texts
        find = texts.payload_lines if self.skips_metadata else texts.lines

        def record_lines(
            content: bytes, count: int, base_offset: int, base_time: int
        ) -> list[str] | None:
            try:
                lines = find(content, count, base_offset, base_time)
            except UnreadableRecordError:
                return None
            if lines is not None:
                self.gaps.note(base_offset, base_offset + len(lines) - 1)
            return lines

        return record_lines

    def _record_lines(self, entry: Entry) -> Iterator[str]:
        for record, text in records_with_texts(entry):
            self.gaps.note(record.offset, record.offset)
            line = "" if self.skips_metadata else text
            if self.decoder is not None and not entry.is_control:
                payload = self.decoder(record)
                prefix = f"{INDENT} " if self.skips_metadata else " "
                if payload.key is not None:
                    line += f"{prefix}key: {payload.key}"
                    prefix = " "
                if payload.value is not None:
                    line += f"{prefix}payload: {payload.value}"
            yield line
