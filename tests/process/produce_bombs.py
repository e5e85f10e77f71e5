"""Batches that cost their reader far more than their sender."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from kvorum.wire.checksums import crc32c
from kvorum.wire.records import Compression
from kvorum.wire.records.compression import compress

MIB: Final = 2**20
PACKED: Final = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
RECORDS_MAX: Final = 740_000
"""As many records of 7 bytes as fit into what a batch may unpack to."""
TINY_RECORD: Final = bytes([12, 0, 0, 0, 1, 1, 0])
"""A record at offset 0 without key and value; the other one has an empty key."""
TINY_KEYED_RECORD: Final = bytes([12, 0, 0, 0, 0, 1, 0])
_ZEROS: Final = bytes(MIB)
_GZIP_HEADER: Final = bytes.fromhex("1f8b0800000000000003")
_ZSTD_HEADER: Final = bytes.fromhex("28b52ffd0050")
_ZSTD_BLOCK_BYTES: Final = 128 * 1024
_NULL: Final = b"\x01"
_SNAPPY_BLOCK_CLAIM: Final = b"\x00\x00\x00\x09\xff\xff\xff\xff\x07\x00\x00\x00\x00"
_ZSTD_FRAME_CLAIM: Final = bytes.fromhex("28b52ffde0") + struct.pack("<Q", 2**40) + bytes(3)
_LZ4_BLOCK_CLAIM: Final = b"\x04\x22\x4d\x18\x70\x40\xdf\x00\x00\x40\x00"


def packed_batch(packed: bytes, compression: Compression, *, record_count: int = 1) -> bytes:
    """Return a batch with a right checksum of any bytes for records."""
    fields = (compression, record_count - 1, 1000, 1000, -1, -1, -1, record_count)
    after_crc = struct.pack(">hiqqqhii", *fields)
    checksum = crc32c(packed, crc32c(after_crc))
    return struct.pack(">qiibI", 0, 49 + len(packed), -1, 2, checksum) + after_crc + packed


def tiny_records(
    compression: Compression, record: bytes = TINY_RECORD, count: int = RECORDS_MAX
) -> bytes:
    """Return a batch of as many records as can be, all at one offset."""
    return packed_batch(compress(record * count, compression), compression, record_count=count)


def large_value(compression: Compression, mib: int) -> bytes:
    """Return a batch of one record whose value is zeros."""
    body = b"\x00\x00\x00\x00" + _zigzag(mib * MIB)
    head, tail = _zigzag(len(body) + mib * MIB + 1) + body, b"\x00"
    if compression is Compression.GZIP:
        packed = _gzip(head, mib, tail)
    elif compression is Compression.ZSTD:
        packed = _zstd(head, mib, tail)
    else:
        packed = compress(head + bytes(mib * MIB) + tail, compression)
    return packed_batch(packed, compression)


def claims(compression: Compression) -> Iterator[bytes]:
    """Yield batches that say that they hold more than they do."""
    some = compress(TINY_RECORD * 10, compression)
    yield packed_batch(some, compression, record_count=2**31 - 1)
    long_record = _zigzag(2**31 - 1) + b"\x00\x00\x00\x00"
    yield packed_batch(compress(long_record, compression), compression)
    long_value = _zigzag(20) + b"\x00\x00\x00" + _NULL + _zigzag(2**30) + bytes(20)
    yield packed_batch(compress(long_value, compression), compression)


def broken_claims() -> dict[Compression, bytes]:
    """Return batches whose packed bytes themselves say that they unpack to gigabytes."""
    empty = compress(b"", Compression.SNAPPY)
    return {
        Compression.SNAPPY: packed_batch(empty + _SNAPPY_BLOCK_CLAIM, Compression.SNAPPY),
        Compression.LZ4: packed_batch(_LZ4_BLOCK_CLAIM, Compression.LZ4),
        Compression.ZSTD: packed_batch(_ZSTD_FRAME_CLAIM, Compression.ZSTD),
    }


def _gzip(head: bytes, mib: int, tail: bytes) -> bytes:
    """Pack mebibytes of zeros between two pieces: the packed mebibyte is repeated."""
    checksum = zlib.crc32(head)
    for _ in range(mib):
        checksum = zlib.crc32(_ZEROS, checksum)
    parts = [_deflated(head), _deflated(_ZEROS) * mib, _deflated(tail, zlib.Z_FINISH)]
    size = len(head) + mib * MIB + len(tail)
    return b"".join([_GZIP_HEADER, *parts, struct.pack("<II", zlib.crc32(tail, checksum), size)])


def _deflated(data: bytes, end: int = zlib.Z_FULL_FLUSH) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush(end)


def _zstd(head: bytes, mib: int, tail: bytes) -> bytes:
    """Pack as `_gzip` does: a block of four bytes stands for 128 KiB of one byte."""
    run = struct.pack("<I", _ZSTD_BLOCK_BYTES << 3 | 1 << 1)[:3] + b"\x00"
    raw_head, raw_tail = struct.pack("<I", len(head) << 3), struct.pack("<I", len(tail) << 3 | 1)
    runs = run * (mib * MIB // _ZSTD_BLOCK_BYTES)
    return b"".join([_ZSTD_HEADER, raw_head[:3], head, runs, raw_tail[:3], tail])


def _zigzag(number: int) -> bytes:
    """Return a number that is not negative, as a record has it."""
    left, encoded = number << 1, bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)
