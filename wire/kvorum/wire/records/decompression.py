"""The bytes that a batch's packed records unpack to: at once while few, else piece by piece.

A few bytes may unpack to gigabytes. Up to `DECOMPRESSED_BYTES_MAX` they are unpacked at once, which
is fastest; more than that is only ever there in pieces. The exception is a block of snappy, which
can only be unpacked whole, and unpacks to 22 times its size at most.

Libraries are imported when the first batch needs them.
"""

import sys
import zlib
from collections.abc import Iterator
from typing import Any, Final

from kvorum.wire.errors import BatchTooLargeError
from kvorum.wire.records.compression_library import codec, codec_error
from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.decompression_errors import damaged
from kvorum.wire.records.lz4_frames import first_lz4_frame, frames_of_few_blocks
from kvorum.wire.records.size_check import SizeCheck, any_size, up_to
from kvorum.wire.records.snappy_framing import snappy_pieces

DECOMPRESSED_BYTES_MAX: Final = 5 * 1024 * 1024
"""Most that a batch may unpack to unless its reader allows more, which kafka-dump-log takes too.

A few bytes can unpack to all of it, and reading holds it twice: packed bytes from an unknown peer
take at most 16 MiB besides their own size.
"""

UNLIMITED_BYTES: Final = 2**63 - 1
"""More than a batch can unpack to: for readers of logs, who keep one record at a time."""

RECORD_BYTES_MAX: Final = 2**31 - 9
"""Kafka's own limit of one record that was packed: the longest array of Java."""

PIECE_BYTES: Final = 1024 * 1024
"""The size of a piece: most pieces are smaller, a block of lz4 may be four times as large."""

# Room for what is unpacked is first guessed, then multiplied: most batches take a few KiB, and
# setting aside as much as is allowed would cost more than unpacking them.
_FIRST_ROOM_BYTES: Final = 32 * 1024
_USUAL_RATIO: Final = 4
_ROOM_GROWTH: Final = 8
# The bits of the window, and 16 for the header and the trailer of gzip.
_GZIP_WINDOW_BITS: Final = zlib.MAX_WBITS + 16
_PACKED_BYTES_AT_ONCE: Final = 64 * 1024
"""The packed bytes that a stream is given: it copies what it has not used with each piece."""


def decompress(
    data: bytes, compression: Compression, *, size_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Return the unpacked bytes; as in Kafka, what lies after a first lz4 frame is not read.

    Raises `BatchTooLargeError` when there are more than `size_max`, `DecompressionError` when they
    cannot be unpacked.
    """
    whole = decompress_few(data, compression, size_max=min(size_max, DECOMPRESSED_BYTES_MAX))
    if whole is not None:
        return whole
    check_size = up_to(size_max, compression)
    check_size(DECOMPRESSED_BYTES_MAX + 1)
    return b"".join(decompressed_pieces(data, compression, check_size))


def decompress_few(
    data: bytes, compression: Compression, *, size_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes | None:
    """Return the unpacked bytes, None if there are more than `size_max`.

    Bytes that are not packed are never too many. Raises `DecompressionError`.
    """
    if compression is Compression.NONE:
        return data
    if compression is Compression.SNAPPY:
        try:
            return b"".join(snappy_pieces(data, up_to(size_max, compression)))
        except BatchTooLargeError:
            return None
    if compression is Compression.LZ4:
        data = first_lz4_frame(data)
    room = min(size_max, max(_FIRST_ROOM_BYTES, _USUAL_RATIO * len(data)))
    while (unpacked := _unpack_within(data, compression, room)) is None and room < size_max:
        room = min(size_max, room * _ROOM_GROWTH)
    return unpacked


def decompressed_pieces(
    data: bytes, compression: Compression, check_size: SizeCheck = any_size
) -> Iterator[bytes]:
    """Yield the unpacked bytes in pieces, each when it is asked for.

    `check_size` is called with the size of all of them up to a piece, before that is yielded.
    Raises `DecompressionError` where the bytes cannot be unpacked.
    """
    if compression is Compression.SNAPPY:
        yield from snappy_pieces(data, check_size)
        return
    size = 0
    for piece in _stream_pieces(data, compression):
        size += len(piece)
        check_size(size)
        yield piece


def _unpack_within(data: bytes, compression: Compression, room: int) -> bytes | None:
    """Return the unpacked bytes, None if there are more than `room`."""
    # One byte more shows the difference between "exactly as much" and "more".
    unpacked = bytearray(room + 1)
    try:
        size = codec(compression).decompress_into(data, unpacked)
    except codec_error() as error:
        if "whole buffer" in str(error):
            return None
        raise damaged(compression, str(error)) from error
    return bytes(memoryview(unpacked)[:size]) if size <= room else None


def _stream_pieces(data: bytes, compression: Compression) -> Iterator[bytes]:
    if compression is Compression.NONE:
        return iter((data,))
    if compression is Compression.GZIP:
        return _gzip_pieces(data)
    return _lz4_pieces(data) if compression is Compression.LZ4 else _zstd_pieces(data)


def _gzip_pieces(data: bytes) -> Iterator[bytes]:
    """Unpack members that follow each other."""
    member = zlib.decompressobj(_GZIP_WINDOW_BITS)
    try:
        for packed in _parts(data):
            left = packed
            while left:
                if member.eof:
                    member = zlib.decompressobj(_GZIP_WINDOW_BITS)
                yield member.decompress(left, PIECE_BYTES)
                left = member.unused_data if member.eof else member.unconsumed_tail
        while not member.eof and (piece := member.decompress(b"", PIECE_BYTES)):
            yield piece
    except zlib.error as error:
        raise damaged(Compression.GZIP, str(error)) from error
    if not member.eof:
        raise damaged(Compression.GZIP, "ends too early")


def _zstd_pieces(data: bytes) -> Iterator[bytes]:
    """Unpack frames that follow each other."""
    zstd = _zstd_streams()
    frame = None
    try:
        for packed in _parts(data):
            left = packed
            while left or not (frame is None or frame.needs_input):
                if frame is None:
                    frame = zstd.ZstdDecompressor()
                yield frame.decompress(left, PIECE_BYTES)
                left = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
    except zstd.ZstdError as error:
        raise damaged(Compression.ZSTD, str(error)) from error
    if frame is not None or not data:
        raise damaged(Compression.ZSTD, "ends too early")


def _zstd_streams() -> Any:
    # Python has them since 3.14. What packs and unpacks at once can do no streams.
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - few batches need it
    else:
        from backports import zstd  # noqa: PLC0415 - few batches need it
    return zstd


def _lz4_pieces(data: bytes) -> Iterator[bytes]:
    unpack = codec(Compression.LZ4).decompress
    try:
        for frame in frames_of_few_blocks(data, PIECE_BYTES):
            yield bytes(unpack(frame))
    except codec_error() as error:
        raise damaged(Compression.LZ4, str(error)) from error


def _parts(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _PACKED_BYTES_AT_ONCE):
        yield data[start : start + _PACKED_BYTES_AT_ONCE]
