"""The dump of a segment or a snapshot, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kvorum.cli.dump.framed_records import UnreadableRecordError
from kvorum.cli.dump.log_parts import Part, log_parts
from kvorum.cli.dump.log_text import (
    INDENT,
    UNLIMITED_BYTES,
    entry_line,
    records_with_texts,
)
from kvorum.cli.dump.offset_gaps import OffsetGaps
from kvorum.cli.dump.payloads import Decoder, MetadataDecoder
from kvorum.cli.dump.plain_batches import RecordLines, is_plain, plain_batches
from kvorum.inspection.mapped_file import MappedFile
from kvorum.wire.records import Record
from kvorum.wire.records.legacy import Entry, read_entries


@dataclass(slots=True)
class LogDump:
    """A printer of one log, with the gaps that it found.

    `decoder` is None where contents are not printed.
    """

    file_name: str
    is_deep: bool = False
    decoder: Decoder | None = None
    skips_metadata: bool = False
    bytes_max: int = UNLIMITED_BYTES
    gaps: OffsetGaps = field(default_factory=OffsetGaps)

    def shown(self, log: MappedFile) -> memoryview:
        """Return what is printed of a log's bytes."""
        return log.view[: self.bytes_max]

    def lines(self, log: MappedFile) -> Iterator[str]:
        """Yield a line for each batch and, if `is_deep`, one for each record; some at once."""
        for part in log_parts(self.shown(log)):
            yield from self.part_lines(log, part)
            log.release(part.end)

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
        if trailing > 0 and self.bytes_max == UNLIMITED_BYTES:
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
            yield self._record_line(record, text, hides_contents=entry.is_control)

    def _record_line(self, record: Record, text: str, *, hides_contents: bool) -> str:
        line = "" if self.skips_metadata else text
        if self.decoder is None or hides_contents:
            return line
        payload = self.decoder(record)
        prefix = f"{INDENT} " if self.skips_metadata else " "
        if payload.key is not None:
            line += f"{prefix}key: {payload.key}"
            prefix = " "
        if payload.value is not None:
            line += f"{prefix}payload: {payload.value}"
        return line
