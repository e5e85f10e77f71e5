"""Compression of a batch's records: gzip, snappy in both framings, lz4 and zstd.

The library is imported when a batch asks for it. What is unpacked is bounded before it is
unpacked: the bytes come from outside.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any

from kvorum.wire.errors import BatchTooLargeError, CorruptBatchError

DECOMPRESSED_BYTES_MAX = 8 * 1024 * 1024
"""Most that a batch may unpack to unless its reader allows more: the quorum's own batch limit."""

_WHAT = "compressed batch"
# The framing of snappy-java, which Kafka uses: this, two version numbers, then sized blocks.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_SIZE = struct.Struct(">i")


class Compression(IntEnum):
    """How a batch's records are packed: the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(data: bytes, compression: Compression) -> bytes:
    """Return `data` packed the way Kafka's own producers pack it."""
    if compression is Compression.NONE:
        return data
    if compression is Compression.SNAPPY:
        return _compress_xerial(data)
    if compression is Compression.LZ4:
        # Kafka reads no blocks that build on the one before.
        packer = _codec(compression).Compressor(content_checksum=False, block_linked=False)
        packer.compress(data)
        return bytes(packer.finish())
    return bytes(_codec(compression).compress(data))


def decompress(
    data: bytes, compression: Compression, *, size_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Return the unpacked bytes.

    Raises `BatchTooLargeError` when there are more than `size_max`, `CorruptBatchError` when they
    cannot be unpacked.
    """
    if compression is Compression.NONE:
        return data
    if compression is Compression.SNAPPY:
        return _decompress_snappy(data, size_max)
    return _decompress_stream(data, compression, size_max)


def _decompress_stream(data: bytes, compression: Compression, size_max: int) -> bytes:
    # One byte more than allowed tells "exactly as much" from "more" without unpacking all of it.
    unpacked = bytearray(size_max + 1)
    try:
        size = _codec(compression).decompress_into(data, unpacked)
    except _errors() as error:
        if "whole buffer" in str(error):
            raise _too_large(compression, size_max) from None
        raise CorruptBatchError(_WHAT, f"{compression.name.lower()}: {error}") from error
    if size > size_max:
        raise _too_large(compression, size_max)
    return bytes(memoryview(unpacked)[:size])


def _compress_xerial(data: bytes) -> bytes:
    codec = _codec(Compression.SNAPPY)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(codec.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_BLOCK_SIZE.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, size_max: int) -> bytes:
    """Unpack blocks in snappy-java's framing, or one bare block, which other clients write."""
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, size_max)
    if len(data) < len(_XERIAL_HEADER):
        raise CorruptBatchError(_WHAT, "snappy: ends inside its header", offset=len(data))
    unpacked: list[bytes] = []
    left = size_max
    pos = len(_XERIAL_HEADER)
    while pos < len(data):
        if pos + _BLOCK_SIZE.size > len(data):
            raise CorruptBatchError(_WHAT, "snappy: ends inside a block's size", offset=pos)
        (size,) = _BLOCK_SIZE.unpack_from(data, pos)
        pos += _BLOCK_SIZE.size
        if not 0 <= size <= len(data) - pos:
            raise CorruptBatchError(_WHAT, f"snappy: a block of {size} bytes", offset=pos)
        block = _snappy_block(data[pos : pos + size], left)
        unpacked.append(block)
        left -= len(block)
        pos += size
    return b"".join(unpacked)


def _snappy_block(data: bytes, size_max: int) -> bytes:
    codec = _codec(Compression.SNAPPY)
    try:
        # A block begins with what it unpacks to, so a bomb shows itself here.
        if codec.decompress_raw_len(data) > size_max:
            raise _too_large(Compression.SNAPPY, size_max)
        return bytes(codec.decompress_raw(data))
    except _errors() as error:
        raise CorruptBatchError(_WHAT, f"snappy: {error}") from error


def _too_large(compression: Compression, size_max: int) -> BatchTooLargeError:
    return BatchTooLargeError(
        _WHAT, f"{compression.name.lower()}: unpacks to more than {size_max} bytes"
    )


def _codec(compression: Compression) -> Any:
    import cramjam  # noqa: PLC0415 - only who meets a compressed batch pays for it

    return getattr(cramjam, compression.name.lower())


def _errors() -> type[Exception]:
    import cramjam  # noqa: PLC0415 - imported already when this is asked

    error: type[Exception] = cramjam.DecompressionError
    return error
