"""One record inside a batch, and the bytes it is made of (message format 2).

A record is: its length, an attributes byte that is always 0, timestamp and offset as differences to
the batch's, key, value, headers. All numbers are zigzag varints; a length of -1 means null.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Final, NamedTuple, TypeAlias

from kvorum.wire.errors import CorruptBatchError, EncodeError
from kvorum.wire.primitives import decode_with_replacement
from kvorum.wire.records.compression import compress_pieces
from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.size_check import SizeCheck, any_size

Header: TypeAlias = tuple[str, bytes | None]

HEADERS_MAX = 32 * 1024
"""Most headers of one record that are read: one takes two bytes in a batch, 170 in memory."""

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
WRITTEN_BYTES_AT_ONCE: Final = 1024 * 1024
"""The size of the records of a batch that are in memory at once while it is written.

A batch of a few hundred bytes may unpack to a million records, or to gigabytes.
"""
WRITTEN_RECORD_BYTES: Final = 256
"""The memory that a record takes besides its bytes while it is written."""
_PARTS_OF_RECORD: Final = 3
INT64_MAX: Final = 2**63 - 1
# More than any difference of one or two bytes.
NEAR_LIMIT: Final = 2**14
_UINT32_MAX = 2**32 - 1
_UINT64_MAX = 2**64 - 1
_WHAT = "record"

_Fields: TypeAlias = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
"""The fields of a `Record`, in its order."""


class Record(NamedTuple):
    """A record as it is read: its offset and time are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


# Makes a record without `Record.__new__`, which would double the cost.
_NEW: Callable[[type[Record], _Fields], Record] = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of object


class RecordData(NamedTuple):
    """A record to be written; its offset follows from its place in the batch."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = -1
    headers: Sequence[Header] = ()


def read_records(
    data: bytes, *, count: int, base_offset: int, base_timestamp: int, position: int = 0
) -> Iterator[Record]:
    """Yield the records that fill `data`, which begins at a position of all records' bytes.

    Raises `CorruptBatchError` where the bytes are not `count` records, with their place in all.
    Times need not fit 64 bits if the base is closer to their limits than `NEAR_LIMIT`.
    """
    try:
        yield from _each_record(data, count, base_offset, base_timestamp)
    except IndexError:
        place = position + len(data)
        raise CorruptBatchError(_WHAT, "ends too early", offset=place) from None
    except CorruptBatchError as error:
        if not position:
            raise
        raise CorruptBatchError(_WHAT, error.problem, offset=position + error.offset) from error


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
    """The packed bytes of records, how many they are, and the times of the first and the latest."""

    data: bytes
    record_count: int
    first_timestamp: int
    latest_timestamp: int


def write_numbered(
    numbered: Iterable[tuple[int, RecordData]],
    base_timestamp: int | None = None,
    *,
    compression: Compression = Compression.NONE,
    check_size: SizeCheck = any_size,
) -> WrittenRecords:
    """Write and pack records with their numbers, of which only a few have to be there at a time.

    Times are written as differences to the base; without a base, that is the time of the first
    record. A difference beyond 64 bits is written as Java computes it, which leads back to the
    time. `check_size` is called with the size of what is packed so far. Raises `EncodeError` for no
    records.
    """
    left = iter(numbered)
    first = next(left, None)
    if first is None:
        raise EncodeError("a batch takes one record at least")
    first_timestamp = first[1].timestamp
    base = first_timestamp if base_timestamp is None else base_timestamp
    writer = _Writer(chain((first,), left), base)
    data = compress_pieces(iter(writer.next_piece, b""), compression, check_size)
    return WrittenRecords(data, writer.record_count, first_timestamp, writer.latest_timestamp)


class _Writer:
    """Writes records in pieces; counts them, and finds the latest time."""

    def __init__(self, numbered: Iterator[tuple[int, RecordData]], base_timestamp: int) -> None:
        self._left = numbered
        self._base_timestamp = base_timestamp
        self.record_count = 0
        self.latest_timestamp = -INT64_MAX - 1

    def next_piece(self) -> bytes:
        """Return the bytes of the next records; none are left after none."""
        base_timestamp = self._base_timestamp
        latest = self.latest_timestamp
        room = WRITTEN_BYTES_AT_ONCE
        record_bytes = WRITTEN_RECORD_BYTES
        written: list[bytes] = []
        write = written.append
        ready, ready_count = _READY, len(_READY)
        for index, (value, key, timestamp, headers) in self._left:
            if timestamp > latest:  # noqa: PLR1730 - `max` would cost a tenth of all
                latest = timestamp
            delta = timestamp - base_timestamp
            head = (
                ready[delta] if 0 <= delta < ready_count else _signed(within_64_bits(delta))
            ) + (ready[index] if index < ready_count else _signed(index))
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
            room -= size + record_bytes
            if room < 0:
                break
        self.latest_timestamp = latest
        self.record_count += len(written) // _PARTS_OF_RECORD
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
