"""The values of batches as metadata logs have them, read without making any record."""

from __future__ import annotations

from typing import Final

# Fewer records are faster read one by one.
_STRIDED_MIN: Final = 4
# What a record has around its value if its numbers take one byte each: length, attributes, time,
# number, no key, the value's length, and no headers behind it.
_SHORT_FRAME_BYTES: Final = 7
_REPEATED: Final = tuple(bytes((number,)) * 64 for number in range(128))
_NUMBERS: Final = bytes(range(0, 128, 2))
RECORDS_MAX: Final = 2048
"""The most records of a batch that are read so; Kafka's snapshots have 1024 in a batch."""


def numbered_values(data: bytes, count: int) -> list[bytes] | None:
    """Return the values of the `count` records that fill `data`.

    They have neither key nor headers, all the batch's base time, and offsets that count up from its
    base offset by one. None is for what has to be read record by record: other records, null
    values, and bytes that are wrong.
    """
    try:
        return _values(data, count)
    except IndexError:
        return None


def _values(data: bytes, count: int) -> list[bytes] | None:
    if not 0 < count <= RECORDS_MAX:
        return None
    stride, rest = divmod(len(data), count)
    if not rest and _STRIDED_MIN <= count < 64 and _is_strided(data, count, stride):
        width = stride - _SHORT_FRAME_BYTES
        return [data[start : start + width] for start in range(6, len(data), stride)]
    return _values_one_by_one(data, count)


def _is_strided(data: bytes, count: int, stride: int) -> bool:
    """Return whether each record has `stride` bytes, and numbers of one byte around its value."""
    # The length of a record counts neither itself nor, in zigzag, half of what it says.
    length = (stride - 1) << 1
    return (
        2 * _SHORT_FRAME_BYTES - 2 <= length < 0x80
        and data[::stride] == _REPEATED[length][:count]
        and data[1::stride] == data[2::stride] == data[stride - 1 :: stride] == _REPEATED[0][:count]
        and data[3::stride] == _NUMBERS[:count]
        and data[4::stride] == _REPEATED[1][:count]
        and data[5::stride] == _REPEATED[length - 2 * _SHORT_FRAME_BYTES + 2][:count]
    )


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
        # The number of headers is the last byte. Odd lengths are negative: null.
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
