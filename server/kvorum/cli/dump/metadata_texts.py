"""Framed records as kafka-dump-log reads them, and metadata records as its JSON.

It reads what a later release wrote as far as its own release knows it, and what it says of a record
that it cannot read is part of the output. `kvorum.metadata.record_frame`, which nodes read with,
refuses both.

Most records of a metadata log say that the leader or the in-sync replicas of one of a number of
partitions changed to one of few combinations. So a record is cut in two: the frame with the fields
of fixed size at the beginning of the body, here partition and topic, and the rest. Each part's text
depends on its own bytes only, and is looked up by them. The texts of parts that come again are kept
ready.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, takewhile
from operator import itemgetter
from struct import Struct
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.cli.dump.log_text import INDENT
from kvorum.metadata.json_text import json_text
from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, record_type, record_type_name
from kvorum.wire.apis import METADATA_RECORDS
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import FieldFacts, fields_of, to_json
from kvorum.wire.primitives import Message
from kvorum.wire.records.numbered_values import (
    SHORT_BEGINNING_BYTES,
    SHORT_FRAME_BYTES,
    common_size,
    numbered_values,
)
from kvorum.wire.uuid_text import uuid_to_text

_NUMBER_BYTES_MAX: Final = 5
_INT16_MAX: Final = 2**15 - 1
_UNKNOWN: Final = "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id"
PARTS_MAX: Final = 1 << 14
"""The number of parts of one kind of record that are kept before all of them are dropped."""

PART_BYTES_MAX: Final = 512
"""The largest part that is kept: larger ones hardly come again."""

ALONE_BYTES_MAX: Final = 4
"""The largest record of which whole batches of one are kept: one without fields."""

# The kinds of fields of fixed size that records begin with, as struct names them.
_CODES: Final = MappingProxyType(
    {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uuid": "16s"}
)

_CONTENTS: Final = " sequence: -1 headerKeys: [] payload: "
_SHORT_NUMBER_MAX: Final = 0x7F
_FRAME: Final = itemgetter(slice(SHORT_HEADER_BYTES))
_FIRST_FRAME: Final = slice(SHORT_BEGINNING_BYTES, SHORT_BEGINNING_BYTES + SHORT_HEADER_BYTES)


class UnreadableRecordError(ValueError):
    """A value that is not a framed record; the text is Kafka's."""


class FramedRecord(NamedTuple):
    """A record with its version, and with the newest version known up to that one: its layout."""

    message: Message
    version: int
    layout: int


def read_framed(value: bytes, class_of: Callable[[int], type[Message] | None]) -> FramedRecord:
    """Return the record in a value; `class_of` returns the class of a record type, None without.

    Raises `UnreadableRecordError`.
    """
    frame, position = _number(value, 0, "frame version")
    if frame == 0:
        raise UnreadableRecordError(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from "
            "the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != 1:
        raise UnreadableRecordError(
            f"Could not deserialize metadata record due to unknown frame version {frame}"
            "(only frame version 1 is supported)"
        )
    type_id, position = _number(value, position, "type")
    version, position = _number(value, position, "version")
    kind = class_of(type_id)
    if kind is None:
        raise UnreadableRecordError(f"{_UNKNOWN} {type_id}")
    layout = min(version, kind.MAX_VERSION)
    try:
        message, end = kind.decode_from(value, position, layout)
    except WireError:
        problem = f"Failed to deserialize record with type {type_id}"
        raise UnreadableRecordError(problem) from None
    if end < len(value):
        rest = len(value) - end
        raise UnreadableRecordError(f"Found {rest} byte(s) of garbage after {type_id}")
    return FramedRecord(message, version, layout)


def _number(value: bytes, position: int, what: str) -> tuple[int, int]:
    """Return a number of the frame, as Java's 32 and then 16 bits hold it, and where it ends."""
    number = 0
    for index, byte in enumerate(value[position : position + _NUMBER_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            number = _signed(number, 32)
            if number > _INT16_MAX:
                raise UnreadableRecordError(f"Value for {what} was too large.")
            return _signed(number, 16), position + index + 1
    raise UnreadableRecordError(f"Error while reading {what}")


def _signed(number: int, bits: int) -> int:
    """Return the number that the lowest bits are as a signed one."""
    limit = 1 << (bits - 1)
    return (number + limit) % (2 * limit) - limit


class _OtherKindError(Exception):
    """A record that has another type or version than those before it."""


class MetadataTexts:
    """Renders the values of metadata records, as `json_text` of `to_json` would."""

    def __init__(self) -> None:
        self._kinds: dict[bytes, _KindTexts] = {}
        self._alone: dict[bytes, str] = {}

    def lines(self, data: bytes, count: int, offset: int, timestamp: int) -> list[str] | None:
        """Return the lines of the `count` records that fill `data`, the first one at `offset`.

        None is for records other than those of `numbered_values`. Raises `UnreadableRecordError`
        for a value that is not a metadata record, or has a longer frame than any release writes.
        """
        # The text between a record's offset and the size of its value.
        place = f" CreateTime: {timestamp} keySize: -1 valueSize: "
        if count == 1 and data in self._alone:
            return [f"{INDENT} offset: {offset}{place}{self._alone[data]}"]
        size = common_size(data, count)
        kind = self._kinds.get(data[_FIRST_FRAME])
        if size is not None and kind is not None:
            heads, tails, parts = kind.heads, kind.tails, kind.parts[size].iter_unpack(data)
            before = f"{place}{size}{_CONTENTS}"
            try:
                lines = [
                    f"{INDENT} offset: {number}{before}{heads[head]}{tails[tail]}"
                    for number, (head, tail) in enumerate(parts, offset)
                ]
            except _OtherKindError:
                pass
            else:
                if count == 1 and size <= ALONE_BYTES_MAX:
                    # An idle controller writes the same record, without content, over and over.
                    self._alone[data] = lines[0].partition("valueSize: ")[2]
                return lines
        values = numbered_values(data, count)
        return None if values is None else self._lines(values, offset, place)

    def payload_lines(self, data: bytes, count: int, *_: int) -> list[str] | None:
        """Return what `lines` does, without offsets, timestamps and sizes."""
        values = numbered_values(data, count)
        if values is None:
            return None
        return [f"{INDENT} payload: {text}" for text in map(self.text, values)]

    def _lines(self, values: Sequence[bytes], offset: int, place: str) -> list[str]:
        """Return the lines of values of any kinds and sizes."""
        lines: list[str] = []
        while len(lines) < len(values):
            # A batch may begin with a broker that goes, and go on with hundreds of its partitions.
            rest, next_offset = values[len(lines) :], offset + len(lines)
            try:
                lines += self._lines_of_one_kind(rest, next_offset, place)
            except _OtherKindError:
                _, run = next(groupby(rest, _FRAME))
                lines += self._lines_of_one_kind(list(run), next_offset, place)
        return lines

    def text(self, value: bytes) -> str:
        """Return type, version and data of a record as JSON.

        Raises `UnreadableRecordError` for a value that is not a metadata record.
        """
        kind = self._kind(value)
        if kind is None:
            record = read_framed(value, _class_of)
            return f"{_opening(record)}{json_text(to_json(record.message, record.layout))}}}"
        return kind.heads[value[: kind.head_end]] + kind.tails[value[kind.head_end :]]

    def _lines_of_one_kind(self, values: Sequence[bytes], offset: int, place: str) -> list[str]:
        """Return the lines of records; `_OtherKindError` if they are of several kinds."""
        kind = self._kind(values[0])
        if kind is None:
            raise UnreadableRecordError("The frame is longer than any release writes it")
        end, heads, tails = kind.head_end, kind.heads, kind.tails
        return [
            f"{INDENT} offset: {number}{place}{len(value)}{_CONTENTS}"
            f"{heads[value[:end]]}{tails[value[end:]]}"
            for number, value in enumerate(values, offset)
        ]

    def _kind(self, value: bytes) -> _KindTexts | None:
        """Return the texts for records that begin as `value` does; None for a longer frame."""
        frame = value[:SHORT_HEADER_BYTES]
        kind = self._kinds.get(frame)
        if kind is None and all(byte <= _SHORT_NUMBER_MAX for byte in frame):
            kind = self._kinds[frame] = _kind_texts(value)
        return kind


class _KindTexts(NamedTuple):
    """The texts of the parts of records of one type and version, and where the first part ends."""

    heads: _Heads
    tails: _Tails
    head_end: int
    parts: _Parts


class _Parts(dict[int, Struct]):
    """The forms of short records by the size of their value; of a record, they take both parts."""

    def __init__(self, head_end: int) -> None:
        super().__init__()
        self._head_end = head_end

    def __missing__(self, size: int) -> Struct:
        head = min(size, self._head_end)
        beginning, end = SHORT_BEGINNING_BYTES, SHORT_FRAME_BYTES - SHORT_BEGINNING_BYTES
        form = self[size] = Struct(f"{beginning}x{head}s{size - head}s{end}x")
        return form


class _Texts(dict[bytes, str]):
    """Texts of parts by their bytes; a part that is new is rendered and kept."""

    def __missing__(self, part: bytes) -> str:
        text = self.rendered(part)
        if len(part) <= PART_BYTES_MAX:
            if len(self) >= PARTS_MAX:
                self.clear()
            self[part] = text
        return text

    def rendered(self, part: bytes) -> str:
        """Return the text of a part."""
        raise NotImplementedError


class _Heads(_Texts):
    """Type and version, and the fields of fixed size that the body begins with."""

    def __init__(self, frame: bytes, opening: str, fields: Sequence[FieldFacts]) -> None:
        super().__init__()
        codes = "".join(_CODES[field.kind] for field in fields)
        self.form: Final = Struct(f">{len(frame)}x{codes}")
        self._frame = frame
        self._opening = opening
        self._names = [field.json_name for field in fields]

    def rendered(self, part: bytes) -> str:
        """Return the text of a part; `_OtherKindError` for one of another kind of record."""
        if not part.startswith(self._frame):
            raise _OtherKindError
        if len(part) < self.form.size:
            # Cut off, which this says as Kafka does.
            read_framed(part, _class_of)
        pairs = [
            f'"{name}":"{uuid_to_text(value)}"' if isinstance(value, bytes) else f'"{name}":{value}'
            for name, value in zip(self._names, self.form.unpack(part), strict=True)
        ]
        return f"{self._opening}{{{','.join(pairs)}"


class _Tails(_Texts):
    """All other fields, which are read behind any head."""

    def __init__(self, head: bytes, layout: int, names: Sequence[str]) -> None:
        super().__init__()
        self._head = head
        self._layout = layout
        self._names = names

    def rendered(self, part: bytes) -> str:
        """Return the text of a part."""
        fields = to_json(read_framed(self._head + part, _class_of).message, self._layout)
        for name in self._names:
            del fields[name]
        comma = "," if self._names and fields else ""
        return f"{comma}{json_text(fields)[1:]}}}"


def _kind_texts(value: bytes) -> _KindTexts:
    """Return texts for records of the type and version that one value has."""
    record = read_framed(value, _class_of)
    layout = record.layout
    fields = [field for field in fields_of(type(record.message)) if field.is_in(layout)]
    fixed = list(
        takewhile(lambda field: field.kind in _CODES and not field.is_tagged_in(layout), fields)
    )
    heads = _Heads(value[:SHORT_HEADER_BYTES], _opening(record), fixed)
    end = heads.form.size
    tails = _Tails(value[:end], layout, [each.json_name for each in fixed])
    return _KindTexts(heads, tails, end, _Parts(end))


def _opening(record: FramedRecord) -> str:
    name = record_type_name(type(record.message))
    return f'{{"type":"{name}","version":{record.version},"data":'


def _class_of(type_id: int) -> type[Message] | None:
    return record_type(type_id) if type_id in METADATA_RECORDS else None
