"""Record batches made by hand, so that storage is tested against no code of ours."""

import struct

from crc32c import crc32c

_AFTER_CRC = struct.Struct(">hiqqqhii")
_BEFORE_CRC = struct.Struct(">qiib")


def zigzag(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def make_record(offset_delta: int, value: bytes, key: bytes | None) -> bytes:
    key_part = zigzag(-1) if key is None else zigzag(len(key)) + key
    body = b"\0" + zigzag(0) + zigzag(offset_delta) + key_part
    body += zigzag(len(value)) + value + zigzag(0)
    return zigzag(len(body)) + body


def make_batch(
    base_offset: int,
    *,
    epoch: int = 1,
    values: tuple[bytes, ...] = (b"value",),
    timestamp: int = 1_000,
    control_type: int | None = None,
) -> bytes:
    """Return one sound batch of format 2."""
    key = None if control_type is None else struct.pack(">hh", 0, control_type)
    records = b"".join(make_record(index, value, key) for index, value in enumerate(values))
    attributes = 0 if control_type is None else 0x20
    covered = _AFTER_CRC.pack(
        attributes, len(values) - 1, timestamp, timestamp, -1, -1, -1, len(values)
    )
    covered += records
    return (
        _BEFORE_CRC.pack(base_offset, 9 + len(covered), epoch, 2)
        + struct.pack(">I", crc32c(covered))
        + covered
    )


def make_batches(start: int, count: int, *, epoch: int = 1) -> list[bytes]:
    """Return `count` batches of one record each, of about 20 bytes more than a header."""
    return [
        make_batch(offset, epoch=epoch, values=(offset.to_bytes(4) * 5,), timestamp=1_000 + offset)
        for offset in range(start, start + count)
    ]


def make_snapshot(*, epoch: int, value_count: int = 3, timestamp: int = 5_000) -> bytes:
    """Return the bytes of a small snapshot: header, one data batch, footer."""
    header_value = struct.pack(">hq", 0, timestamp) + b"\0"
    values = tuple(f"record {number}".encode() for number in range(value_count))
    return (
        make_batch(0, epoch=epoch, values=(header_value,), control_type=3)
        + make_batch(1, epoch=epoch, values=values)
        + make_batch(1 + value_count, epoch=epoch, values=(b"\0\0\0",), control_type=4)
    )
