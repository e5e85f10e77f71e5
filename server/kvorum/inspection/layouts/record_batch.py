"""The building blocks of layouts, and record batches: format 2, its records, control records.

A layout is a `Struct` of fields. Each field that `named` makes remembers which bytes it was read
from: the caller that reads the layout hands in a list as `trace`, and the field adds itself to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from construct import (
    Array,
    Byte,
    Bytes,
    CheckError,
    Computed,
    Construct,
    Container,
    ExprAdapter,
    FocusedSeq,
    If,
    IfThenElse,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Peek,
    RepeatUntil,
    Struct,
    Tell,
    stream_tell,
    this,
)

from kvorum.inspection.layouts.field import Field
from kvorum.wire.checksums import crc32c

VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10


if TYPE_CHECKING:
    Layout: TypeAlias = Construct[Any, Any]
else:
    # The class has parameters for type checkers only.
    Layout = Construct

HERE: Final = Tell
"""The position in the file, which takes up no bytes."""

UUID: Final = Bytes(16)

MAGIC: Final = 2
HEADER_BYTES: Final = 61
OVERHEAD_BYTES: Final = 12
"""The bytes of a batch besides those that its length counts: offset and length."""
_LENGTH_MIN: Final = HEADER_BYTES - OVERHEAD_BYTES
# Format, checksum and what lies before them are not covered by the checksum.
_BEFORE_CRC: Final = 9
_OFFSET_MAX: Final = 2**63 - 2**31
"""The highest base offset: the last one of the batch must fit 64 bits too."""

COMPRESSION_BITS: Final = 0x07
CONTROL_BIT: Final = 0x20

ABORT: Final = 0
COMMIT: Final = 1
"""The types of the control records that end a transaction."""


class _Named(Layout):
    """A field that adds itself to `trace`, a list that parse() was given."""

    def __init__(self, subcon: Layout) -> None:
        super().__init__()
        self._subcon = subcon

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        start = stream_tell(stream, path)
        value = self._subcon._parsereport(stream, context, path)
        trace = context._params.get("trace")
        if trace is not None:
            name = path.removeprefix("(parsing) -> ").replace(" -> ", ".")
            trace.append(Field(name, start, stream_tell(stream, path), value))
        return value


def named(**fields: Layout) -> Struct:
    """Return the layout that consists of these fields, in their order.

    A name that begins with an underscore is not a field but a rule, or a help for others.
    """
    return Struct(
        *(
            name / (subcon if name.startswith("_") else _Named(subcon))
            for name, subcon in fields.items()
        )
    )


def rule(problem: Callable[[Container[Any]], str | None]) -> Layout:
    """Return a rule between fields: `problem` says what is wrong with those read so far, or None.

    It takes up no bytes. Where it is broken, CheckError is raised with the problem; or, where
    parse() was given a list `broken`, the problem is added to it and reading goes on.
    """

    def checked(context: Container[Any]) -> None:
        found = problem(context)
        if found is None:
            return
        broken = context._params.get("broken")
        if broken is None:
            raise CheckError(found)
        broken.append(found)

    return Computed(checked)


def problem_of_end(part: Container[Any]) -> str | None:
    """Return what is wrong where a part, whose length counts from `_body`, ends at `_end`."""
    stated = part._body + part.length
    if stated != part._end:
        return f"ends at byte {part._end}, where its length says {stated}"
    return None


def _number(bytes_max: int, bits: int) -> Layout:
    """Return the layout of a number in groups of seven bits, the lowest first.

    Bits beyond the number's width are dropped, as Java's shifts do.
    """
    mask: int = 2**bits - 1

    def joined(read: list[int], _: object) -> int:
        if read[-1] > 0x7F:
            raise CheckError(f"a number of more than {bytes_max} bytes")
        number: int = sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(read))
        return number & mask

    def is_end(byte: int, read: list[int], _: object) -> bool:
        return byte < 0x80 or len(read) == bytes_max

    return ExprAdapter(RepeatUntil(is_end, Byte), joined, _not_written)


def _zigzag(number: Layout) -> Layout:
    """Return the layout of a number whose lowest bit is its sign."""
    return ExprAdapter(number, lambda value, _: (value >> 1) ^ -(value & 1), _not_written)


def _not_written(*_: object) -> NoReturn:
    raise NotImplementedError("layouts are for reading")


UNSIGNED_VARINT: Final = _number(VARINT_BYTES, 32)
VARINT: Final = _zigzag(UNSIGNED_VARINT)
VARLONG: Final = _zigzag(_number(VARLONG_BYTES, 64))


def sized_bytes(length: Layout, *, may_be_null: bool = True) -> Layout:
    """Return the layout of bytes behind their length; a negative length stands for null."""
    null = Computed(None) if may_be_null else rule(lambda _: "null where bytes belong")
    return FocusedSeq(
        "content", length=length, content=IfThenElse(this.length < 0, null, Bytes(this.length))
    )


_COMPACT_LENGTH: Final = ExprAdapter(UNSIGNED_VARINT, lambda value, _: value - 1, _not_written)
COMPACT_STRING: Final = sized_bytes(_COMPACT_LENGTH, may_be_null=False)
"""A string of the flexible versions: its length plus one, and its bytes."""


def compact_array(item: Layout) -> Layout:
    """Return the layout of an array of the flexible versions: the count plus one, and the items."""
    return FocusedSeq("items", count=_COMPACT_LENGTH, items=Array(this.count, item))


_TAG: Final = Struct("tag" / UNSIGNED_VARINT, "content" / sized_bytes(UNSIGNED_VARINT))
TAGGED_FIELDS: Final = FocusedSeq("items", count=UNSIGNED_VARINT, items=Array(this.count, _TAG))
"""The end of a flexible version: fields that a reader need not know."""


CONTROL_KEY: Final = named(version=Int16sb, type=Int16sb)
"""The key of every control record. 0 and 1 end a transaction, the others are the quorum's."""

END_TRANSACTION_MARKER: Final = named(version=Int16sb, coordinator_epoch=Int32sb)

_VOTER_ID: Final = named(
    voter_id=Int32sb,
    voter_directory_id=If(this._root.version >= 1, UUID),
    tagged_fields=TAGGED_FIELDS,
)
LEADER_CHANGE: Final = named(
    version=Int16sb,
    leader_id=Int32sb,
    voters=compact_array(_VOTER_ID),
    granting_voters=compact_array(_VOTER_ID),
    tagged_fields=TAGGED_FIELDS,
)
"""The first batch of each leader's epoch: who leads, who the voters are, who voted for it."""

SNAPSHOT_HEADER: Final = named(
    version=Int16sb, last_contained_log_timestamp=Int64sb, tagged_fields=TAGGED_FIELDS
)
SNAPSHOT_FOOTER: Final = named(version=Int16sb, tagged_fields=TAGGED_FIELDS)
KRAFT_VERSION: Final = named(version=Int16sb, kraft_version=Int16sb, tagged_fields=TAGGED_FIELDS)

_ENDPOINT: Final = named(
    name=COMPACT_STRING, host=COMPACT_STRING, port=Int16ub, tagged_fields=TAGGED_FIELDS
)
_SUPPORTED_VERSIONS: Final = named(
    min_supported_version=Int16sb, max_supported_version=Int16sb, tagged_fields=TAGGED_FIELDS
)
_VOTER: Final = named(
    voter_id=Int32sb,
    voter_directory_id=UUID,
    endpoints=compact_array(_ENDPOINT),
    kraft_version_feature=_SUPPORTED_VERSIONS,
    tagged_fields=TAGGED_FIELDS,
)
KRAFT_VOTERS: Final = named(
    version=Int16sb, voters=compact_array(_VOTER), tagged_fields=TAGGED_FIELDS
)

CONTROL_VALUES: Final[Mapping[int, Layout]] = MappingProxyType(
    {
        ABORT: END_TRANSACTION_MARKER,
        COMMIT: END_TRANSACTION_MARKER,
        2: LEADER_CHANGE,
        3: SNAPSHOT_HEADER,
        4: SNAPSHOT_FOOTER,
        5: KRAFT_VERSION,
        6: KRAFT_VOTERS,
    }
)
"""The layout of a control record's value, by the type in its key."""


def _problem_of_place(batch: Container[Any]) -> str | None:
    if batch.length < _LENGTH_MIN:
        return f"a length of {batch.length} bytes is less than a header takes"
    if not 0 <= batch.base_offset <= _OFFSET_MAX:
        return f"a base offset of {batch.base_offset}"
    return None


def _problem_of_magic(batch: Container[Any]) -> str | None:
    return None if batch.magic == MAGIC else f"format {batch.magic} instead of {MAGIC}"


def _problem_of_checksum(batch: Container[Any]) -> str | None:
    if batch._covered is None:
        return "cut off by the end of the file"
    computed = crc32c(batch._covered)
    return None if computed == batch.crc else f"the checksum is {computed}, stored is {batch.crc}"


def _problem_of_counts(batch: Container[Any]) -> str | None:
    if batch.last_offset_delta < 0:
        return f"a last offset delta of {batch.last_offset_delta}"
    return f"{batch.records_count} records" if batch.records_count < 0 else None


RECORD_BATCH: Final = named(
    base_offset=Int64sb,
    length=Int32sb,
    _place=rule(_problem_of_place),
    partition_leader_epoch=Int32sb,
    magic=Int8sb,
    _magic=rule(_problem_of_magic),
    crc=Int32ub,
    _covered=Peek(Bytes(this.length - _BEFORE_CRC)),
    _checksum=rule(_problem_of_checksum),
    attributes=Int16ub,
    last_offset_delta=Int32sb,
    base_timestamp=Int64sb,
    max_timestamp=Int64sb,
    producer_id=Int64sb,
    producer_epoch=Int16sb,
    base_sequence=Int32sb,
    records_count=Int32sb,
    _counts=rule(_problem_of_counts),
    records=Bytes(this.length - _LENGTH_MIN),
)
"""A batch. Its checksum does not cover what a leader or a follower may write: offset and epoch.

Attributes: bits 0 to 2 compression, 3 log append time, 4 transactional, 5 control, 6 delete
horizon. `records` are bytes here: `RECORDS` reads them when they are unpacked.
"""


HEADER: Final = named(key=sized_bytes(VARINT, may_be_null=False), value=sized_bytes(VARINT))

RECORD: Final = named(
    length=VARINT,
    _body=HERE,
    attributes=Int8sb,
    timestamp_delta=VARLONG,
    offset_delta=VARINT,
    key=sized_bytes(VARINT),
    value=sized_bytes(VARINT),
    headers_count=VARINT,
    _headers_count=rule(
        lambda record: f"{record.headers_count} headers" if record.headers_count < 0 else None
    ),
    headers=Array(this.headers_count, HEADER),
    _end=HERE,
    _length=rule(problem_of_end),
)
"""A record; its attributes have no meaning yet. Timestamp and offset count from the batch's."""


def records(count: int) -> Struct:
    """Return the layout of the unpacked records of a batch that holds `count` of them."""
    return named(records=Array(count, RECORD))
