"""One record inside a batch, and the bytes it is made of (message format 2).

A record is: its length, an attributes byte that is always 0, timestamp and offset as differences to
the batch's, key, value, headers. All numbers are zigzag varints; a length of -1 means null.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Final, NamedTuple, TypeAlias

from kvorum.wire.errors import CorruptBatchError, EncodeError, InvalidRecordError
from kvorum.wire.primitives import decode_with_replacement

Header: TypeAlias = tuple[str, bytes | None]

HEADERS_MAX = 32 * 1024
"""Most headers of one record that are read: one takes two bytes in a batch, 170 in memory."""

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
RECORDS_AT_ONCE: Final = 4096
"""The number of records of a batch that are objects at once while it is written.

A batch of a few hundred bytes may unpack to a million records, which take 300 bytes each.
"""
INT64_MAX: Final = 2**63 - 1
# More than any difference of one or two bytes.
NEAR_LIMIT: Final = 2**14
_UINT32_MAX = 2**32 - 1
_UINT64_MAX = 2**64 - 1
_WHAT = "record"


class Record(NamedTuple):
    """A record as it is read: its offset and time are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


_Fields: TypeAlias = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
# Makes a record without `Record.__new__`, which would double the cost.
_NEW: Callable[[type[Record], _Fields], Record] = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of object


class RecordData(NamedTuple):
    """A record to be written; its offset follows from its place in the batch."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = -1
    headers: Sequence[Header] = ()


def read_records(
    data: bytes, *, count: int, base_offset: int, base_timestamp: int
) -> Iterator[Record]:
    """Yield the records that fill `data`.

    Raises `CorruptBatchError` where the bytes are not `count` records, with their place in `data`.
    Times need not fit 64 bits if the base is closer to their limits than `NEAR_LIMIT`.
    """
    try:
        yield from _each_record(data, count, base_offset, base_timestamp)
    except IndexError:
        raise CorruptBatchError(_WHAT, "ends too early", offset=len(data)) from None


def records_up_to(size_max: int, data: bytes, records: Iterator[Record]) -> Iterator[Record]:
    """Yield records as they are read from `data`, while none is larger than `size_max` bytes.

    The length that a record begins with is not counted. Raises `InvalidRecordError` where a larger
    one begins, before it is read, as Kafka does.
    """
    pos = 0
    while pos < len(data):
        try:
            size, begin = _varint(data, pos)
        except IndexError:
            # The reader says what is wrong here.
            break
        if size > size_max:
            problem = f"{size} bytes exceed the configured maximum record size of {size_max}"
            raise InvalidRecordError(_WHAT, problem, offset=pos)
        yield from islice(records, 1)
        pos = begin + max(size, 0)
    yield from records


def _each_record(  # noqa: C901, PLR0912, PLR0915 - the hottest loop: numbers are read in line
    data: bytes, count: int, base_offset: int, base_timestamp: int
) -> Iterator[Record]:
    size = len(data)
    pos = 0
    for _ in repeat(None, count):
        start = pos
        number = data[pos]
        pos += 1
        if number > 0x7F:
            if (byte := data[pos]) < 0x80:
                number += (byte - 1) << 7
                pos += 1
            else:
                number, pos = long_number(data, pos - 1)
        # Twice where it ends: odd, and so nowhere, for a negative length.
        twice_end = pos + pos + number
        # One byte of attributes, of which none is defined, then the time.
        number = data[pos + 1]
        pos += 2
        if number > 0x7F:
            if (byte := data[pos]) < 0x80:
                number += (byte - 1) << 7
                pos += 1
            else:
                number, pos = long_time(data, pos - 1, base_timestamp)
        timestamp = base_timestamp + (~(number >> 1) if number & 1 else number >> 1)
        number = data[pos]
        pos += 1
        if number > 0x7F:
            if (byte := data[pos]) < 0x80:
                number += (byte - 1) << 7
                pos += 1
            else:
                number, pos = long_number(data, pos - 1)
        offset = base_offset + (~(number >> 1) if number & 1 else number >> 1)
        key = value = None
        number = data[pos]
        pos += 1
        if number > 0x7F:
            number, pos = long_number(data, pos - 1)
        # Odd numbers are negative: Kafka takes every negative length for null.
        if not number & 1:
            stop = pos + (number >> 1)
            key = data[pos:stop]
            pos = stop
        number = data[pos]
        pos += 1
        if number > 0x7F:
            if (byte := data[pos]) < 0x80:
                number += (byte - 1) << 7
                pos += 1
            else:
                number, pos = long_number(data, pos - 1)
        if not number & 1:
            stop = pos + (number >> 1)
            value = data[pos:stop]
            pos = stop
        headers: tuple[Header, ...] = ()
        if data[pos]:
            headers, pos = read_headers(data, pos, twice_end >> 1)
        else:
            pos += 1
        # Parts that reach beyond the record, or the data, end somewhere else than it does.
        if pos + pos != twice_end or pos > size:
            raise _misfit(start, pos, twice_end >> 1)
        yield _NEW(Record, (offset, timestamp, key, value, headers))
    if pos != size:
        raise CorruptBatchError(_WHAT, f"{size - pos} bytes follow the last of {count}", offset=pos)


def within_64_bits(number: int) -> int:
    """Return Java's result for a number that has grown beyond 64 bits."""
    return (number + INT64_MAX + 1) % 2**64 - INT64_MAX - 1


def _misfit(start: int, pos: int, end: int) -> CorruptBatchError:
    problem = f"{pos - start} bytes of which its length allows {end - start}"
    return CorruptBatchError(_WHAT, problem, offset=start)


def _nullable_bytes(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    number = data[pos]
    pos += 1
    if number > 0x7F:
        number, pos = long_number(data, pos - 1)
    if number & 1:
        return None, pos
    length = number >> 1
    stop = pos + length
    if stop > end:
        raise CorruptBatchError(_WHAT, f"{length} bytes reach beyond its end", offset=pos)
    return data[pos:stop], stop


def read_headers(data: bytes, pos: int, end: int) -> tuple[tuple[Header, ...], int]:
    """Return the headers of a record, whose number is at `pos`, and the position after them.

    `end` is where the record ends. A key that is not UTF-8 is read as Java reads it. Raises
    `CorruptBatchError`.
    """
    start = pos
    count, pos = _varint(data, pos)
    # Each header takes two bytes at least: a higher count is refused before memory is allocated.
    if count < 0 or count * 2 > end - pos:
        raise CorruptBatchError(_WHAT, f"{count} headers do not fit", offset=start)
    if count > HEADERS_MAX:
        raise CorruptBatchError(_WHAT, f"{count} headers, {HEADERS_MAX} are read", offset=start)
    headers: list[Header] = []
    for _ in range(count):
        key, pos = _nullable_bytes(data, pos, end)
        if key is None:
            raise CorruptBatchError(_WHAT, "a header without a key", offset=pos)
        value, pos = _nullable_bytes(data, pos, end)
        headers.append((decode_with_replacement(key), value))
    return tuple(headers), pos


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """Return a zigzag number of 32 bits and the position after it."""
    number, pos = long_number(data, pos)
    return (number >> 1) ^ -(number & 1), pos


def long_time(data: bytes, pos: int, base_timestamp: int) -> tuple[int, int]:
    """Return a difference, zigzag, that leads to a time of 64 bits, and the position after it."""
    number, pos = long_number(data, pos, VARLONG_BYTES_MAX)
    time = within_64_bits(base_timestamp + ((number >> 1) ^ -(number & 1)))
    difference = time - base_timestamp
    return difference << 1 if difference >= 0 else ~(difference << 1), pos


def long_number(data: bytes, pos: int, bytes_max: int = VARINT_BYTES_MAX) -> tuple[int, int]:
    """Return a number of up to `bytes_max` bytes, zigzag as it is, and the position after it."""
    number = data[pos] & 0x7F
    if data[pos] < 0x80:
        return number, pos + 1
    byte = data[pos + 1]
    if byte < 0x80:
        return number | byte << 7, pos + 2
    shift = 0
    number = 0
    for byte in data[pos : pos + bytes_max]:
        pos += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Bits beyond the number's width are dropped, as by Java's shifts.
            return number & (_UINT32_MAX if bytes_max == VARINT_BYTES_MAX else _UINT64_MAX), pos
        shift += 7
    if pos == len(data):
        raise IndexError
    raise CorruptBatchError(_WHAT, f"a number longer than {bytes_max} bytes", offset=pos)


class WrittenRecords(NamedTuple):
    """The bytes of records, how many they are, and the times of the first and of the latest."""

    data: bytes
    record_count: int
    first_timestamp: int
    latest_timestamp: int


def write_numbered(
    numbered: Iterable[tuple[int, RecordData]], base_timestamp: int | None = None
) -> WrittenRecords:
    """Write records with their numbers, of which only a few have to be there at a time.

    Times are written as differences to the base; without a base, that is the time of the first
    record. A difference beyond 64 bits is written as Java computes it, which leads back to the
    time. Raises `EncodeError` for no records.
    """
    left = iter(numbered)
    parts: list[bytes] = []
    record_count = first_timestamp = latest_timestamp = 0
    while some := list(islice(left, RECORDS_AT_ONCE)):
        latest = max(record.timestamp for _, record in some)
        if not parts:
            first_timestamp, latest_timestamp = some[0][1].timestamp, latest
        latest_timestamp = max(latest_timestamp, latest)
        base = first_timestamp if base_timestamp is None else base_timestamp
        parts.append(_written(some, base))
        record_count += len(some)
    if not parts:
        raise EncodeError("a batch takes one record at least")
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    return WrittenRecords(data, record_count, first_timestamp, latest_timestamp)


def _written(numbered: Iterable[tuple[int, RecordData]], base_timestamp: int) -> bytes:
    written: list[bytes] = []
    write = written.append
    ready, ready_count = _READY, len(_READY)
    for index, (value, key, timestamp, headers) in numbered:
        delta = timestamp - base_timestamp
        head = (ready[delta] if 0 <= delta < ready_count else _signed(within_64_bits(delta))) + (
            ready[index] if index < ready_count else _signed(index)
        )
        if key is None:
            head += _NULL
        else:
            size = len(key)
            head += (ready[size] if size < ready_count else _signed(size)) + key
        if value is None:
            head += _NULL
            value = b""  # noqa: PLW2901 - null is written like empty, except for its length
        else:
            size = len(value)
            head += ready[size] if size < ready_count else _signed(size)
        tail = _header_bytes(headers) if headers else _NO_HEADERS
        size = 1 + len(head) + len(value) + len(tail)
        write((ready[size] if size < ready_count else _signed(size)) + b"\x00" + head)
        write(value)
        write(tail)
    return b"".join(written)


def _header_bytes(headers: Sequence[Header]) -> bytes:
    parts = [_signed(len(headers))]
    for key, value in headers:
        encoded = key.encode("utf-8")
        parts.append(_signed(len(encoded)) + encoded)
        parts.append(_NULL if value is None else _signed(len(value)) + value)
    return b"".join(parts)


def _signed(number: int) -> bytes:
    """Return any number of up to 64 bits as a zigzag varint."""
    if not -(2**63) <= number < 2**63:
        raise EncodeError(f"{number} does not fit 64 bits")
    return encode_unsigned_varint((number << 1) ^ (number >> 63))


def encode_unsigned_varint(number: int) -> bytes:
    """Return a number that is not negative in groups of seven bits, the lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


# Lengths and differences are mostly small: their bytes are made once.
_READY: Final = tuple(map(_signed, range(2048)))
_NULL: Final = _signed(-1)
_NO_HEADERS: Final = _READY[0]
