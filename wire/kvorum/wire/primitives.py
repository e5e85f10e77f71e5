"""The base of generated messages: their class, varints, tagged sections, arrays of numbers.

Generated code handles the common cases inline and calls the functions here for the rest, so these
are the slow and careful ones. `data` is always the whole buffer, `pos` the next byte to read.
Functions that read return (value, next position).
"""

import codecs
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar, NoReturn, Protocol, Self, TypeAlias, TypeVar

from kvorum.wire.errors import DecodeError, EncodeError, UnsupportedVersionError

__all__ = [
    "EMPTY",
    "INT32S_AND_BYTE",
    "INT32_COMPACT",
    "INT32_COUNTED",
    "INT32_LAST",
    "INT32_READERS",
    "UVARINT_1",
    "Budget",
    "Message",
    "Struct",
    "Tags",
    "Write",
    "check_array",
    "check_length",
    "decode_with_replacement",
    "end_of_tag",
    "fail",
    "long_int32s",
    "long_int32s_or_null",
    "long_string_length",
    "long_uvarint",
    "new",
    "no_tags",
    "non_default",
    "not_a_uuid",
    "null_field",
    "packer",
    "packers",
    "read_numbers",
    "read_tag",
    "read_tags",
    "string_length",
    "unpacker",
    "write_numbers",
    "write_tags",
    "write_uvarint",
]
"""The names that generated modules import."""

STRING_BYTES_MAX = 32_767
"""Longest string of the protocol, in both encodings; Kafka refuses longer ones both ways."""
UVARINT_BYTES_MAX = 5
NEVER = 32_768
"""First flexible version of a message that has none."""
SMALL_ARRAY = 17
"""Arrays of numbers shorter than this have a ready-made reader and writer."""
COPIES_MAX = 3
"""The factor by which a message in memory may exceed its input, beside copied strings."""
MEMORY_BYTES_FREE = 14 << 20
"""The memory that a message may take besides that."""
NUMBER_BYTES = 56
"""The memory of one number while its array is read: the number, and two pointers to it."""
UNKNOWN_TAG_BYTES = 180
"""The memory of an unknown tag: number, payload, the pair of them and its place in a list."""
UNCOUNTED_BYTES_MAX = 128 << 10
"""Nothing this short can take more than `MEMORY_BYTES_FREE`, so it is not counted."""

REPLACEMENT = "\ufffd"
AS_JAVA = "kvorum.as-java"
"""The error handler of `bytes.decode` that replaces invalid UTF-8 as Java does."""
SURROGATE_LEAD = 0xED
SURROGATE_SECONDS = frozenset(bytes([second]) for second in range(0xA0, 0xC0))

T = TypeVar("T")
Tags: TypeAlias = list[tuple[int, bytes]]
Write: TypeAlias = Callable[[bytes | memoryview], object]
Budget: TypeAlias = "MemoryBudget | None"
Reader: TypeAlias = Callable[[bytes, int, Budget], tuple[Any, int]]
Writer: TypeAlias = Callable[[Any, Write, int], None]

EMPTY: list[Any] = []
"""The value for "not given" where None means null. Never stored, never changed."""
UVARINT_1 = tuple(bytes([value]) for value in range(128))
"""The unsigned varints of one byte, by their values: nearly all that are written."""


class New(Protocol):
    """Make an object without running its `__init__`: the reader sets every field itself."""

    def __call__(self, kind: type[T], /) -> T:
        """Return a bare object of `kind`."""
        ...


new: New = object.__new__


def unpacker(code: str) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Return the function that reads big-endian values at a place of the data."""
    return struct.Struct(f">{code}").unpack_from


def packer(code: str) -> Callable[..., bytes]:
    """Return the function that writes big-endian values."""
    return struct.Struct(f">{code}").pack


def packers(code: str, after: str = "") -> tuple[Callable[..., bytes], ...]:
    """Return functions that write values and an array of int32 after them, by its short length."""
    return tuple(packer(f"{code}{count}i{after}") for count in range(SMALL_ARRAY))


INT32_READERS = tuple(unpacker(f"{count}i") for count in range(SMALL_ARRAY))
INT32_COUNTED = packers("i")
INT32_COMPACT = packers("B")
INT32S_AND_BYTE = tuple(
    (unpacker(f"{max(count - 1, 0)}i"), 4 * count - 3) for count in range(SMALL_ARRAY + 1)
)
"""By compact count, which is one more than the elements: what reads them, and how far the byte
after them ends."""
INT32_LAST = packers("B", after="x")
"""A compact array with an empty tagged section after it."""


class MemoryBudget:
    """The memory that reading a message may still take: a few bytes can encode many objects."""

    __slots__ = ("left",)

    def __init__(self, memory_bytes_max: int) -> None:
        self.left = memory_bytes_max

    def charge(self, amount: int, pos: int) -> None:
        """Subtract the memory of new objects; raise `DecodeError` if that is too much."""
        self.left -= amount
        if self.left < 0:
            fail("takes too much memory for its length", pos)


class Struct:
    """A struct of a message, with comparison and a text form.

    A tagged struct is absent from the wire as a rule: its slot, `maybe_` before its name, is then
    None, and the field's property makes the default at its first use.
    """

    __slots__ = ("unknown_tagged_fields",)

    FIELDS: ClassVar[tuple[tuple[Any, ...], ...]] = ()
    unknown_tagged_fields: Tags | None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        if (self.unknown_tagged_fields or None) != (other.unknown_tagged_fields or None):
            return False
        return all(
            getattr(self, field[0]) == getattr(other, field[0]) for field in type(self).FIELDS
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # mutable, so never a key

    def __repr__(self) -> str:
        names = [field[0] for field in type(self).FIELDS]
        fields = [f"{name}={getattr(self, name)!r}" for name in names]
        if self.unknown_tagged_fields:
            fields.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__name__}({', '.join(fields)})"


class Message(Struct):
    """A whole message: all its versions, both directions.

    `FLEXIBLE_FROM` is the first version with compact lengths and tagged fields, `NEVER` if there is
    none. `API_KEY` is None for messages that are no request, response or record.
    """

    __slots__ = ()

    NAME: ClassVar[str]
    API_KEY: ClassVar[int | None]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]
    READERS: ClassVar[tuple[Reader, ...]]
    WRITERS: ClassVar[tuple[Writer, ...]]

    def encode(self, version: int) -> bytes:
        """Return the bytes of this message in `version`.

        Raises `UnsupportedVersionError` without such a version, or when a field that it
        lacks holds more than its default and may not be dropped; `EncodeError` for a value that
        the schema does not allow.
        """
        parts = self.encode_parts(version)
        try:
            return b"".join(parts)
        except TypeError as error:
            raise EncodeError(f"{self.NAME} version {version}: {error}") from error

    def encode_parts(self, version: int) -> list[bytes | memoryview]:
        """Return the bytes of this message in pieces that follow each other; see `encode`.

        The value of each records field is a piece of its own, the very object, and only its length
        is looked at: a sender may thus hold records elsewhere than in memory.
        """
        parts: list[bytes | memoryview] = []
        try:
            self.WRITERS[self.version_index(version)](self, parts.append, version)
            return parts
        except (struct.error, TypeError, AttributeError, UnicodeError) as error:
            raise EncodeError(f"{self.NAME} version {version}: {error}") from error

    @classmethod
    def decode(
        cls,
        data: bytes | bytearray | memoryview,
        version: int,
        *,
        memory_bytes_max: int | None = None,
    ) -> Self:
        """Return the message that fills `data`; raises `DecodeError` if it does not.

        Record blobs are views of `data`, not copies, when `data` is `bytes`. A message that would
        take more than about 4 times its length and 16 MiB in memory is refused, because a
        few bytes could otherwise exhaust the reader's memory. Pass `memory_bytes_max` for more from
        a trusted peer, such as the metadata of a very large cluster.
        """
        message, end = cls.decode_from(data, 0, version, memory_bytes_max=memory_bytes_max)
        if end != len(data):
            raise DecodeError(cls.NAME, f"{len(data) - end} bytes too many", offset=end)
        return message

    @classmethod
    def decode_from(
        cls,
        data: bytes | bytearray | memoryview,
        offset: int,
        version: int,
        *,
        memory_bytes_max: int | None = None,
    ) -> tuple[Self, int]:
        """Return the message that starts at `offset`, and where it ends; see `decode`."""
        whole = data if type(data) is bytes else bytes(data)
        read = cls.READERS[cls.version_index(version)]
        budget: Budget = None
        if memory_bytes_max is not None:
            budget = MemoryBudget(memory_bytes_max)
        elif len(whole) > UNCOUNTED_BYTES_MAX:
            budget = MemoryBudget(COPIES_MAX * (len(whole) - offset) + MEMORY_BYTES_FREE)
        try:
            return read(whole, offset, budget)
        except IndexError:
            raise DecodeError(cls.NAME, "ends too early", offset=len(whole)) from None
        except struct.error:
            raise DecodeError(cls.NAME, "ends too early", offset=len(whole)) from None
        except DecodeError as error:
            raise DecodeError(cls.NAME, error.problem, offset=error.offset) from None

    @classmethod
    def version_index(cls, version: int) -> int:
        """Return the index of `version` in READERS and WRITERS."""
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise UnsupportedVersionError(
                f"{cls.NAME} has no version {version}; it has {cls.MIN_VERSION} to "
                f"{cls.MAX_VERSION}"
            )
        return version - cls.MIN_VERSION


def fail(problem: str, pos: int) -> NoReturn:
    """Raise `DecodeError`; `Message.decode_from` adds the name of the message."""
    raise DecodeError("message", problem, offset=pos)


def non_default(name: str, version: int) -> NoReturn:
    """Refuse to drop a value that `version` cannot carry, with Kafka's message."""
    raise UnsupportedVersionError(f"Attempted to write a non-default {name} at version {version}")


def not_a_uuid(value: bytes) -> NoReturn:
    """Refuse to write a uuid of the wrong length."""
    raise EncodeError(f"a uuid has 16 bytes, not {len(value)}")


def null_field(name: str) -> NoReturn:
    """Refuse to write a null that the schema does not allow."""
    raise EncodeError(f"non-nullable field {name} is null")


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits."""
    value = 0
    for shift in range(0, 7 * UVARINT_BYTES_MAX, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF, pos
    fail("a varint has no end", pos)


def write_uvarint(value: int) -> bytes:
    """Return the unsigned varint of a value of at most 32 bits."""
    if value < 128:
        return UVARINT_1[value]
    if value > 0xFFFF_FFFF:
        raise EncodeError(f"{value} does not fit an unsigned varint")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def long_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """Read the rest of a varint whose first byte, just before `pos`, has the continuation bit."""
    return read_uvarint(data, pos - 1)


def string_length(data: bytes, pos: int) -> tuple[int, int]:
    """Read the rest of the compact length (one more than the bytes) of a string."""
    value, pos = read_uvarint(data, pos - 1)
    if value - 1 > STRING_BYTES_MAX:
        fail(f"a string has {value - 1} bytes, more than {STRING_BYTES_MAX}", pos)
    return value, pos


def decode_with_replacement(raw: bytes) -> str:
    """Return a string whose bytes are not UTF-8 as Java reads it, each flaw as U+FFFD.

    This is for requests and for records on disk. Kafka writes no such record, and reads one that
    another program has written in the same way.
    """
    return raw.decode(errors=AS_JAVA)


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of a flaw, and where the next character starts.

    Java treats the three bytes of a surrogate as one flaw, even if the last one is missing. For all
    other flaws it replaces what Unicode calls a maximal subpart, as Python does.
    """
    assert isinstance(error, UnicodeDecodeError)
    raw, start = error.object, error.start
    if raw[start] != SURROGATE_LEAD or raw[start + 1 : start + 2] not in SURROGATE_SECONDS:
        return REPLACEMENT, error.end
    third = raw[start + 2 : start + 3]
    return REPLACEMENT, start + (3 if third and third[0] & 0xC0 == 0x80 else 2)


codecs.register_error(AS_JAVA, _replace_as_java)


def check_length(length: int, pos: int, size: int, *, what: str) -> None:
    """Refuse a length that is negative or beyond what is left."""
    if length < 0:
        fail(f"non-nullable {what} is null" if length == -1 else f"{what} has length {length}", pos)
    if length > size - pos:
        fail(f"{what} of length {length}, but {size - pos} bytes are left", pos)


def long_string_length(length: int) -> bytes:
    """Return the compact length (one more than the bytes) of a string of 127 bytes and more."""
    if length - 1 > STRING_BYTES_MAX:
        raise EncodeError(f"a string has {length - 1} bytes, more than {STRING_BYTES_MAX}")
    return write_uvarint(length)


def check_array(
    count: int, bytes_min: int, memory_bytes: int, what: str, pos: int, size: int, budget: Budget
) -> None:
    """Refuse an array that is null, or whose elements do not fit into the input or the memory.

    An element takes at least `bytes_min` of the input, and `memory_bytes` of the memory.
    """
    if not 0 <= count * bytes_min <= size - pos:
        check_length(-1 if count < 0 else count * bytes_min, pos, size, what=what)
    if budget is not None:
        budget.charge(count * memory_bytes, pos)


def read_numbers(data: bytes, pos: int, count: int, code: str, budget: Budget) -> list[Any]:
    """Read an array of fixed-width numbers, `code` being its format character."""
    if count * struct.calcsize(">" + code) > len(data) - pos:
        fail(f"an array of {count} elements, but {len(data) - pos} bytes are left", pos)
    if budget is not None:
        budget.charge(count * NUMBER_BYTES, pos)
    return list(struct.unpack_from(f">{count}{code}", data, pos))


def long_int32s(data: bytes, pos: int, count: int, budget: Budget) -> tuple[list[int], int]:
    """Read a compact array of int32 that is long, or wrongly null; `count` is its first byte."""
    found, pos = long_int32s_or_null(data, pos, count, budget)
    if found is None:
        fail("a non-nullable array is null", pos)
    return found, pos


def long_int32s_or_null(
    data: bytes, pos: int, count: int, budget: Budget
) -> tuple[list[int] | None, int]:
    """Read a compact array of int32 that is long or null; `count` is its first byte."""
    if count > 127:
        count, pos = long_uvarint(data, pos)
    if count == 0:
        return None, pos
    return read_numbers(data, pos, count - 1, "i", budget), pos + 4 * (count - 1)


def write_numbers(values: list[Any], code: str) -> bytes:
    """Return the bytes of an array of fixed-width numbers, without its count."""
    return struct.pack(f">{len(values)}{code}", *values)


def read_tags(data: bytes, pos: int, count: int, budget: Budget) -> tuple[Tags, int]:
    """Read a tagged section none of whose tags is known; `count` is its first byte."""
    if count > 127:
        count, pos = long_uvarint(data, pos)
    if budget is not None:
        budget.charge(count * UNKNOWN_TAG_BYTES, pos)
    found: Tags = []
    previous = -1
    for _ in range(count):
        tag, start, pos = read_tag(data, pos, previous)
        found.append((tag, data[start:pos]))
        previous = tag
    return found, pos


def read_tag(data: bytes, pos: int, previous: int) -> tuple[int, int, int]:
    """Read a tag and its size: (tag, where its payload starts, where that ends)."""
    tag, pos = read_uvarint(data, pos)
    size, pos = read_uvarint(data, pos)
    if tag <= previous:
        fail(f"tag {tag} comes after tag {previous}", pos)
    if size > len(data) - pos:
        fail(f"tag {tag} of {size} bytes, but {len(data) - pos} are left", pos)
    return tag, pos, pos + size


def end_of_tag(tag: int, pos: int, end: int) -> None:
    """Refuse a known tag whose payload is longer or shorter than its declared size."""
    if pos != end:
        fail(f"tag {tag} ends at byte {pos}, not at {end}", pos)


def write_tags(known: Tags, unknown: Tags | None) -> bytes:
    """Return the bytes of a tagged section, known and unknown tags in order of tag."""
    tags = known + unknown if unknown else known
    if unknown:
        tags = sorted(tags, key=lambda entry: entry[0])
        for (tag, _), (following, _) in pairwise(tags):
            if tag == following:
                raise EncodeError(f"tag {tag} is written twice")
    entries = [write_uvarint(tag) + write_uvarint(len(payload)) + payload for tag, payload in tags]
    return write_uvarint(len(tags)) + b"".join(entries)


def no_tags(version: int) -> NoReturn:
    """Refuse tagged fields in a version that has none."""
    raise UnsupportedVersionError(
        f"Tagged fields were set, but version {version} of this message does not support them."
    )
