"""Reading bytes by a layout: the fields with their places, and where the bytes leave the layout."""

import gzip
import io
from collections.abc import Iterator
from typing import Final, NamedTuple

import cramjam
from construct import (
    Const,
    ConstructError,
    GreedyBytes,
    GreedyRange,
    Int32sb,
    Prefixed,
    Struct,
    Terminated,
)

from kvorum.inspection.layouts.field import Field
from kvorum.inspection.layouts.legacy_messages import LEGACY_MESSAGE, MAGIC_PLACE
from kvorum.inspection.layouts.record_batch import (
    COMPRESSION_BITS,
    CONTROL_BIT,
    CONTROL_KEY,
    CONTROL_VALUES,
    MAGIC,
    RECORD_BATCH,
    Layout,
    records,
)

_MAGIC: Final = b"\x82SNAPPY\x00"
_FRAMED: Final = Struct(
    "magic" / Const(_MAGIC),
    "version" / Int32sb,
    "compatible_version" / Int32sb,
    "blocks" / GreedyRange(Prefixed(Int32sb, GreedyBytes)),
    "end" / Terminated,
)

_GZIP: Final = 1
_SNAPPY: Final = 2
_LZ4: Final = 3
_ZSTD: Final = 4
"""The codes of compression that a batch's attributes have."""


def unpack_snappy(packed: bytes) -> bytes:
    """Return the unpacked bytes of framed blocks, or of one block without a frame.

    Raises ValueError or the library's DecompressionError.
    """
    if not packed.startswith(_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(packed))
    try:
        framed = _FRAMED.parse(packed)
    except ConstructError as error:
        raise ValueError(f"snappy: {error}") from error
    return b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in framed.blocks)


class LayoutProblem(NamedTuple):
    """The end of the bytes that fit their layout: the first byte after it, and the reason."""

    position: int
    field: str
    text: str


class Reading(NamedTuple):
    """The fields that were read, the position after them, and the first problem."""

    fields: tuple[Field, ...]
    end: int
    problem: LayoutProblem | None

    def value(self, path: str) -> object:
        """Return the value of the field at `path`; raises KeyError where it was not read."""
        for field in self.fields:
            if field.path == path:
                return field.value
        raise KeyError(path)

    def number(self, path: str) -> int:
        """Return the value of a field that holds a number."""
        value = self.value(path)
        assert isinstance(value, int)
        return value


def read_layout(
    layout: Layout, data: bytes, position: int = 0, *, reads_on: bool = False
) -> Reading:
    """Read `data` from `position` on; positions of fields count from the beginning of `data`.

    With `reads_on` a broken rule, such as a wrong checksum, does not end the reading.
    """
    trace: list[Field] = []
    broken: list[str] = []
    stream = io.BytesIO(data)
    stream.seek(position)
    problem = None
    try:
        layout.parse_stream(stream, trace=trace, broken=broken if reads_on else None)
    except (ConstructError, TypeError) as error:
        # With a broken rule before it, a field may lack what it is computed from.
        end = trace[-1].end if trace else position
        path = error.path if isinstance(error, ConstructError) else None
        field = (path or "").removeprefix("(parsing) -> ").replace(" -> ", ".")
        problem = LayoutProblem(end, field, str(error).splitlines()[-1].strip())
    if broken:
        problem = LayoutProblem(position, "", "; ".join(broken))
    end = trace[-1].end if problem is not None and trace else stream.tell()
    return Reading(tuple(trace), end, problem)


class EntryReading(NamedTuple):
    """An entry of a log: where it begins, and what was read of it."""

    position: int
    reading: Reading


def read_log(data: bytes, position: int = 0) -> Iterator[EntryReading]:
    """Yield the entries of a .log or .checkpoint file, whatever their formats.

    The last one has a problem where not all bytes are sound entries.
    """
    while position < len(data):
        reading = read_layout(entry_layout(data, position), data, position)
        yield EntryReading(position, reading)
        if reading.problem is not None:
            return
        position = reading.end


def entry_layout(data: bytes, position: int) -> Layout:
    """Return the layout of the entry that begins at `position`, by its format."""
    place = position + MAGIC_PLACE
    is_legacy = place < len(data) and data[place] < MAGIC
    return LEGACY_MESSAGE if is_legacy else RECORD_BATCH


def read_records(batch: Reading) -> Reading:
    """Read the records of a batch that was read; positions count within the unpacked records.

    The keys and values of control records are read too, as fields of their own.
    """
    attributes = batch.number("attributes")
    packed = batch.value("records")
    assert isinstance(packed, bytes)
    try:
        content = unpack(packed, attributes & COMPRESSION_BITS)
    except (ValueError, OSError, EOFError, cramjam.DecompressionError) as error:
        return Reading((), 0, LayoutProblem(0, "records", f"cannot be unpacked: {error}"))
    reading = read_layout(records(batch.number("records_count")), content)
    if reading.problem is None and reading.end != len(content):
        text = f"{len(content) - reading.end} bytes follow the last record"
        reading = reading._replace(problem=LayoutProblem(reading.end, "records", text))
    if attributes & CONTROL_BIT and reading.problem is None:
        return _with_control_records(reading)
    return reading


def _with_control_records(reading: Reading) -> Reading:
    """Add the fields of control records' keys and values."""
    fields: list[Field] = []
    control_type = -1
    for field in reading.fields:
        fields.append(field)
        if field.path == "records.key":
            inner = _within(CONTROL_KEY, field)
            control_type = inner.number("records.key.type") if inner.problem is None else -1
        elif field.path == "records.value" and control_type in CONTROL_VALUES:
            inner = _within(CONTROL_VALUES[control_type], field)
        else:
            continue
        fields += inner.fields
        if inner.problem is not None:
            return Reading(tuple(fields), inner.problem.position, inner.problem)
    return reading._replace(fields=tuple(fields))


def _within(layout: Layout, field: Field) -> Reading:
    """Read a field's bytes by a layout of their own."""
    content = field.value if isinstance(field.value, bytes) else b""
    start = field.end - len(content)
    inner = read_layout(layout, content)
    moved = tuple(
        part._replace(
            path=f"{field.path}.{part.path}", start=start + part.start, end=start + part.end
        )
        for part in inner.fields
    )
    problem = inner.problem
    if problem is not None:
        problem = problem._replace(position=start + problem.position)
    return Reading(moved, start + inner.end, problem)


def unpack(packed: bytes, compression: int) -> bytes:
    """Return unpacked records; ValueError for an unknown compression, the library's errors else."""
    if compression == 0:
        return packed
    if compression == _GZIP:
        return gzip.decompress(packed)
    if compression == _SNAPPY:
        return unpack_snappy(packed)
    if compression == _LZ4:
        return bytes(cramjam.lz4.decompress(packed))
    if compression == _ZSTD:
        return bytes(cramjam.zstd.decompress(packed))
    raise ValueError(f"compression {compression}")
