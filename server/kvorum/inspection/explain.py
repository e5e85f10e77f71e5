"""The bytes around one position of a file, field by field, by the declared layouts.

This module needs the library construct, which the check itself does not.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvorum.inspection.layouts.field import Field
from kvorum.inspection.layouts.kinds import FileForm, FileLayout, layout_of
from kvorum.inspection.layouts.reading import Reading, entry_layout, read_layout, read_records
from kvorum.inspection.layouts.record_batch import HEADER_BYTES, OVERHEAD_BYTES
from kvorum.log_files.file_systems import FileWindow, LocalFiles

_SHOWN_BYTES: Final = 16
_SHOWN_TEXT: Final = 60
_ENTRY_BYTES_MAX: Final = 64 * 1024 * 1024
# Enough of bytes that are no entry to see what they are.
_UNKNOWN_BYTES: Final = 4096


class UnknownLayoutError(Exception):
    """A file whose name is not known, or a position outside of it; one line of text."""


@dataclass(frozen=True, slots=True)
class Row:
    """One field: where it is, its bytes (the first ones of many), and its value as text.

    `is_asked` marks the field that holds the position that was asked for. A field of packed
    records has its place within the unpacked bytes, and `is_unpacked`.
    """

    path: str
    start: int
    end: int
    data: bytes
    value: str
    is_asked: bool
    is_unpacked: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """The fields of a part of a file, and the first problem in it, with its field."""

    rows: tuple[Row, ...]
    problem: str | None


def explain(path: Path, position: int) -> Explanation:
    """Return the fields of the entry, or of the whole small file, that holds byte `position`.

    Raises `UnknownLayoutError` and OSError.
    """
    layout = layout_of(path.name)
    if layout is None:
        raise UnknownLayoutError(f"{path}: no layout has such a name")
    with closing(LocalFiles().open(str(path))) as file:
        window = FileWindow(file, end=file.size)
        if not 0 <= position < max(window.end, 1):
            raise UnknownLayoutError(f"{path}: byte {position} of {window.end} bytes")
        if layout.form is FileForm.LOG:
            return _log_entry(window, position)
        return _small_file(layout, bytes(window.at(0, window.end)), position)


def _small_file(layout: FileLayout, data: bytes, position: int) -> Explanation:
    if layout.text is not None:
        fields, problem = layout.text(data)
        text = None if problem is None else f"byte {problem.position}: {problem.text}"
        return Explanation(tuple(_rows(fields, data, position)), text)
    assert layout.layout is not None
    start = position - position % layout.entry_size if layout.entry_size else 0
    return _explained(read_layout(layout.layout, data, start, reads_on=True), data, position)


def _explained(reading: Reading, data: bytes, position: int, shift: int = 0) -> Explanation:
    rows = tuple(_rows(reading.fields, data, position, shift=shift))
    return Explanation(rows, _problem_of(reading, shift))


def _problem_of(reading: Reading, shift: int = 0) -> str | None:
    problem = reading.problem
    if problem is None:
        return None
    field = f" ({problem.field})" if problem.field and not problem.field.startswith("_") else ""
    return f"byte {problem.position + shift}{field}: {problem.text}"


def _rows(
    fields: tuple[Field, ...],
    data: bytes,
    position: int,
    *,
    shift: int = 0,
    is_unpacked: bool = False,
) -> Iterator[Row]:
    # A field that consists of others comes after them, and says nothing new.
    for field in fields:
        if isinstance(field.value, (dict, list)):
            continue
        start, end = field.start + shift, field.end + shift
        value = field.value.hex() if isinstance(field.value, bytes) else str(field.value)
        yield Row(
            path=field.path,
            start=start,
            end=end,
            data=data[field.start : field.start + min(_SHOWN_BYTES, field.end - field.start)],
            value=value if len(value) <= _SHOWN_TEXT else value[:_SHOWN_TEXT] + "…",
            is_asked=not is_unpacked and start <= position < end,
            is_unpacked=is_unpacked,
        )


def _log_entry(window: FileWindow, position: int) -> Explanation:
    start, size = _entry_at(window, position)
    data = bytes(window.at(start, min(size, _ENTRY_BYTES_MAX)))
    reading = read_layout(entry_layout(data, 0), data, reads_on=True)
    explained = _explained(reading, data, position, shift=start)
    if (
        reading.problem is not None
        or len(data) < HEADER_BYTES
        or "records" not in {field.path for field in reading.fields}
    ):
        return explained
    is_packed = reading.number("attributes") & 0x07 != 0
    records = read_records(reading)
    header = tuple(row for row in explained.rows if row.path != "records" or is_packed)
    content = data[HEADER_BYTES:] if not is_packed else b""
    shift = 0 if is_packed else start + HEADER_BYTES
    rows = _rows(records.fields, content, position, shift=shift, is_unpacked=is_packed)
    return Explanation((*header, *rows), _problem_of(records, shift))


def _entry_at(window: FileWindow, position: int) -> tuple[int, int]:
    """Return start and size of the entry that holds a position, as far as the lengths lead.

    The walk ends where a length is impossible: what is there is taken for the entry.
    """
    start = 0
    while True:
        head = window.at(start, OVERHEAD_BYTES)
        length = int.from_bytes(head[8:12], signed=True)
        if len(head) < OVERHEAD_BYTES or length <= 0:
            return start, min(_UNKNOWN_BYTES, window.end - start)
        end = start + OVERHEAD_BYTES + length
        if position < end:
            return start, min(end, window.end) - start
        start = end
