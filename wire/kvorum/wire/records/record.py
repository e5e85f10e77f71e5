"""One record inside a batch, and the bytes it is made of (message format 2).

A record is: its length, an attributes byte that is always 0, timestamp and offset as differences to
the batch's, key, value, headers. All numbers are zigzag varints; a length of -1 means null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from kvorum.wire.errors import CorruptBatchError, EncodeError

Header: TypeAlias = tuple[str, bytes | None]

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10
_INT32_MAX = 2**31 - 1
_ONE_BYTE = tuple(bytes((number,)) for number in range(128))
_NULL = _ONE_BYTE[1]
_NO_HEADERS = _ONE_BYTE[0]
_WHAT = "record"


class Record(NamedTuple):
    """A record as it is read: its offset and time are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class RecordData(NamedTuple):
    """A record to be written; its offset follows from its place in the batch."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = -1
    headers: Sequence[Header] = ()


def read_records(
    data: bytes, *, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> Iterator[Record]:
    """Yield the records that fill `data`; `append_time`, where given, is the time of all of them.

    Raises `CorruptBatchError` where the bytes are not `count` records, with their place in `data`.
    """
    pos = 0
    try:
        for _ in range(count):
            start = pos
            length, pos = _varint(data, pos, VARINT_BYTES_MAX)
            end = pos + length
            if length < 0 or end > len(data):
                raise CorruptBatchError(_WHAT, f"a length of {length} bytes", offset=start)
            # One byte of attributes, of which none is defined.
            number = data[pos + 1]
            if number < 0x80:
                time_delta, pos = (number >> 1) ^ -(number & 1), pos + 2
            else:
                time_delta, pos = _varint(data, pos + 1, VARLONG_BYTES_MAX)
            number = data[pos]
            if number < 0x80:
                offset_delta, pos = (number >> 1) ^ -(number & 1), pos + 1
            else:
                offset_delta, pos = _varint(data, pos, VARINT_BYTES_MAX)
            key, pos = _nullable_bytes(data, pos, end)
            value, pos = _nullable_bytes(data, pos, end)
            headers: tuple[Header, ...] = ()
            if data[pos]:
                headers, pos = _headers(data, pos, end)
            else:
                pos += 1
            if pos != end:
                problem = f"holds {pos - start} bytes where its length says {end - start}"
                raise CorruptBatchError(_WHAT, problem, offset=start)
            timestamp = base_timestamp + time_delta if append_time is None else append_time
            yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    except IndexError:
        raise CorruptBatchError(_WHAT, "ends too early", offset=len(data)) from None
    if pos != len(data):
        raise CorruptBatchError(
            _WHAT, f"{len(data) - pos} bytes follow the last of {count}", offset=pos
        )


def _nullable_bytes(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    number = data[pos]
    if number < 0x80:
        length, pos = (number >> 1) ^ -(number & 1), pos + 1
    else:
        length, pos = _varint(data, pos, VARINT_BYTES_MAX)
    if length < 0:
        # Kafka takes every negative length for null.
        return None, pos
    stop = pos + length
    if stop > end:
        raise CorruptBatchError(_WHAT, f"{length} bytes reach beyond its end", offset=pos)
    return data[pos:stop], stop


def _headers(data: bytes, pos: int, end: int) -> tuple[tuple[Header, ...], int]:
    start = pos
    count, pos = _varint(data, pos, VARINT_BYTES_MAX)
    # Each header takes two bytes at least: a count beyond that is refused before it is believed.
    if count < 0 or count * 2 > end - pos:
        raise CorruptBatchError(_WHAT, f"{count} headers do not fit", offset=start)
    headers: list[Header] = []
    for _ in range(count):
        key, pos = _nullable_bytes(data, pos, end)
        if key is None:
            raise CorruptBatchError(_WHAT, "a header without a key", offset=pos)
        value, pos = _nullable_bytes(data, pos, end)
        try:
            headers.append((key.decode("utf-8"), value))
        except UnicodeDecodeError as error:
            problem = f"a header's key is not UTF-8: {error.reason}"
            raise CorruptBatchError(_WHAT, problem, offset=pos) from None
    return tuple(headers), pos


def _varint(data: bytes, pos: int, bytes_max: int) -> tuple[int, int]:
    """Return a zigzag number of up to `bytes_max` bytes and the position behind it."""
    number = shift = 0
    for _ in range(bytes_max):
        byte = data[pos]
        pos += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            # What does not fit the number's width is dropped, as Java's shifts do.
            number &= (1 << (32 if bytes_max == VARINT_BYTES_MAX else 64)) - 1
            return (number >> 1) ^ -(number & 1), pos
        shift += 7
    raise CorruptBatchError(_WHAT, f"a number longer than {bytes_max} bytes", offset=pos)


def write_records(records: Sequence[RecordData], base_timestamp: int) -> bytes:
    """Return the bytes of `records`, numbered from 0, their times as differences to the base."""
    written: list[bytes] = []
    for index, (value, key, timestamp, headers) in enumerate(records):
        key_part = _NULL if key is None else _length(len(key)) + key
        value_part = _NULL if value is None else _length(len(value)) + value
        body = b"".join(
            (
                b"\x00",
                _signed(timestamp - base_timestamp),
                _signed(index),
                key_part,
                value_part,
                _header_bytes(headers) if headers else _NO_HEADERS,
            )
        )
        written.append(_length(len(body)))
        written.append(body)
    return b"".join(written)


def _header_bytes(headers: Sequence[Header]) -> bytes:
    parts = [_signed(len(headers))]
    for key, value in headers:
        encoded = key.encode("utf-8")
        parts.append(_signed(len(encoded)) + encoded)
        parts.append(_NULL if value is None else _signed(len(value)) + value)
    return b"".join(parts)


def _length(size: int) -> bytes:
    """Return a length, never negative, as a zigzag varint."""
    if size < 64:
        return _ONE_BYTE[size << 1]
    if size < 8192:
        return bytes((size << 1 & 0x7F | 0x80, size >> 6))
    if size > _INT32_MAX:
        raise EncodeError(f"{size} bytes in one record")
    return _long_uvarint(size << 1)


def _signed(number: int) -> bytes:
    """Return any number of up to 64 bits as a zigzag varint."""
    zigzag = (number << 1) ^ (number >> 63)
    if zigzag < 0x80:
        return _ONE_BYTE[zigzag]
    if zigzag < 0x4000:
        return bytes((zigzag & 0x7F | 0x80, zigzag >> 7))
    return _long_uvarint(zigzag)


def _long_uvarint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
