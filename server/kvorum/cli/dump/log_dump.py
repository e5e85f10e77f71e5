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
from kvorum.inspection.mapped_file import MappedFile
from kvorum.wire.records import Record, RecordBatch
from kvorum.wire.records.batch import HEADER_BYTES, NO_SEQUENCE
from kvorum.wire.records.legacy import Entry, read_entries
from kvorum.wire.records.numbered_values import numbered_values


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
        entry: Entry | None = None
        for entry in read_entries(shown, begin=part.begin, is_cut_allowed=True):
            yield entry_line(entry)
            if self.is_deep:
                yield from self._record_lines(entry)
        trailing = part.end - (part.begin if entry is None else entry.position + entry.size)
        if trailing > 0 and self.bytes_max == UNLIMITED_BYTES:
            yield f"Found {trailing} invalid bytes at the end of {self.file_name}"

    def _record_lines(self, entry: Entry) -> Iterator[str]:
        if isinstance(self.decoder, MetadataDecoder) and isinstance(entry, RecordBatch):
            lines = metadata_lines(entry, self.decoder, skips_metadata=self.skips_metadata)
            if lines is not None:
                self.gaps.note(entry.base_offset, entry.base_offset + len(lines) - 1)
                yield "\n".join(lines)
                return
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


def metadata_lines(
    batch: RecordBatch, decoder: MetadataDecoder, *, skips_metadata: bool
) -> list[str] | None:
    """Return the lines for the records of a batch as controllers write them, None for others.

    They are what record by record would give, for a fraction of the cost.
    """
    if batch.attributes or batch.base_sequence != NO_SEQUENCE:
        return None
    values = numbered_values(bytes(batch.data[HEADER_BYTES:]), batch.record_count)
    if values is None:
        return None
    try:
        if skips_metadata:
            return [f"{INDENT} payload: {text}" for text in map(decoder.texts.text, values)]
        place = f" CreateTime: {batch.base_timestamp} keySize: -1 valueSize: "
        return decoder.texts.lines(values, batch.base_offset, place)
    except UnreadableRecordError:
        return None
