"""The values of batches as metadata logs have them, read without making any record."""

from functools import lru_cache
from typing import Final

# The count of numbers that a byte can hold if it is the last one of a number.
_ONE_BYTE: Final = 0x80
# Fewer records are faster read one by one.
_STRIDED_MIN: Final = 4
# The bytes of a record before its value if its numbers take one byte each: length, attributes,
# time, number, no key, the value's length. A byte after the value says that there are no headers.
SHORT_BEGINNING_BYTES: Final = 6
SHORT_FRAME_BYTES: Final = SHORT_BEGINNING_BYTES + 1
_REPEATED: Final = tuple(bytes((number,)) * 64 for number in range(_ONE_BYTE))
_NUMBERS: Final = bytes(range(0, _ONE_BYTE, 2))
_SHORT_NUMBERS: Final = len(_NUMBERS)
RECORDS_MAX: Final = 2048
"""The most records of a batch that are read so; Kafka's snapshots have 1024 in a batch."""


def numbered_values(data: bytes, count: int) -> list[bytes] | None:
    """Return the values of the `count` records that fill `data`.

    They have neither key nor headers, all the batch's base time, and offsets that count up from its
    base offset by one. None is for what has to be read record by record: other records, null
    values, and bytes that are wrong.
    """
    if not 0 < count <= RECORDS_MAX:
        return None
    try:
        values = _values_of_short_records(data, count)
        return _values_one_by_one(data, count) if values is None else values
    except IndexError:
        return None


def common_size(data: bytes, count: int) -> int | None:
    """Return the size of the values that `numbered_values` would return, if all have the same.

    Then a value begins `SHORT_BEGINNING_BYTES` after the beginning of its record. None is also for
    few and for many records, and for sizes that take more than a byte.
    """
    if count == 1:
        return _size_of_one(data)
    if not _STRIDED_MIN <= count < _SHORT_NUMBERS:
        return None
    stride, rest = divmod(len(data), count)
    # The length of a record counts neither itself nor, in zigzag, half of what it says.
    length = (stride - 1) << 1
    size = length - 2 * SHORT_FRAME_BYTES + 2
    if (
        rest == 0 <= size
        and length < _ONE_BYTE
        and data[::stride] == _REPEATED[length][:count]
        and data[1::stride] == data[2::stride] == data[stride - 1 :: stride] == _REPEATED[0][:count]
        and data[3::stride] == _NUMBERS[:count]
        and data[4::stride] == _REPEATED[1][:count]
        and data[5::stride] == _REPEATED[size][:count]
    ):
        return size >> 1
    return None


def _size_of_one(data: bytes) -> int | None:
    size = len(data) - SHORT_FRAME_BYTES
    length = (len(data) - 1) << 1
    is_short = size >= 0 and length < _ONE_BYTE and not data[-1]
    return size if is_short and data.startswith(_short_beginnings(length)[0]) else None


def _values_of_short_records(data: bytes, count: int) -> list[bytes] | None:
    """Return the values if the length of each record takes one byte, else None."""
    values: list[bytes] = []
    add = values.append
    pos, known_length = 0, -1
    beginnings: tuple[bytes, ...] = ()
    sections = (range(min(count, _SHORT_NUMBERS)), range(_SHORT_NUMBERS, count))
    for beginning_bytes, numbers in enumerate(sections, SHORT_BEGINNING_BYTES):
        for number in numbers:
            length = data[pos]
            if length != known_length:
                beginnings, known_length = _short_beginnings(length), length
            start = pos + beginning_bytes
            if data[pos:start] != beginnings[number]:
                return None
            pos += length >> 1
            # The number of headers is the last byte.
            if data[pos]:
                return None
            add(data[start:pos])
            pos += 1
    return values if pos == len(data) else None


def _values_one_by_one(data: bytes, count: int) -> list[bytes] | None:
    values: list[bytes] = []
    add = values.append
    pos = 0
    for beginning in _BEGINNINGS[:count]:
        length = data[pos]
        pos += 1
        if length > 0x7F:
            if (byte := data[pos]) > 0x7F:
                return None
            length += (byte - 1) << 7
            pos += 1
        twice_end = pos + pos + length
        if not data.startswith(beginning, pos):
            return None
        pos += len(beginning)
        length = data[pos]
        pos += 1
        if length > 0x7F:
            if (byte := data[pos]) > 0x7F:
                return None
            length += (byte - 1) << 7
            pos += 1
        stop = pos + (length >> 1)
        # Odd lengths are negative: null.
        if length & 1 or data[stop] or stop + stop + 2 != twice_end:
            return None
        add(data[pos:stop])
        pos = stop + 1
    return values if pos == len(data) else None


def _beginning(number: int) -> bytes:
    zigzag = number << 1
    encoded = bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes((0, 0, *encoded, zigzag, 1))


# All that is between the length of a record and that of its value: no attributes, the batch's own
# time, the record's number in the batch, no key.
_BEGINNINGS: Final = tuple(map(_beginning, range(RECORDS_MAX)))


@lru_cache(maxsize=_ONE_BYTE)
def _short_beginnings(length: int) -> tuple[bytes, ...]:
    """Return all that is before the value of a record, by its number; its length takes one byte."""
    if length >= _ONE_BYTE or length & 1:
        # Longer, or negative. No record begins with nothing.
        return (b"",) * RECORDS_MAX
    sizes = (length - 2 * (len(beginning) + 2) for beginning in _BEGINNINGS)
    return tuple(
        bytes((length, *beginning, size)) if size >= 0 else b""
        for beginning, size in zip(_BEGINNINGS, sizes, strict=True)
    )
