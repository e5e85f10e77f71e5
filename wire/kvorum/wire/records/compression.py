"""Compression of a batch's records: gzip, snappy in Java's framing, lz4 and zstd.

The library is imported when the first batch needs it.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from itertools import chain
from typing import Any, Final, TypeAlias

# The framing of snappy-java, which Kafka uses: this, two version numbers, then sized blocks.
XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
XERIAL_BLOCK_SIZE: Final = struct.Struct(">i")
_XERIAL_BLOCK_BYTES: Final = 32 * 1024

SizeCheck: TypeAlias = Callable[[int], None]
"""Takes the size that bytes have reached, in bytes, and raises an error to end the work."""


def any_size(_: int) -> None:
    """Allow any size."""


class Compression(IntEnum):
    """The compression of a batch's records: the low three bits of its attributes."""

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
        return b"".join((XERIAL_HEADER, *_xerial_blocks(data)))
    if compression is Compression.LZ4:
        packer = _stream_packer(compression)
        packer.compress(data)
        return bytes(packer.finish())
    return bytes(codec(compression).compress(data))


def compress_pieces(
    pieces: Iterable[bytes], compression: Compression, check_size: SizeCheck = any_size
) -> bytes:
    """Return the packed bytes of pieces, of which only two have to be there at a time.

    `check_size` is called with the size of what is packed so far.
    """
    left = iter(pieces)
    first = next(left, b"")
    second = next(left, None)
    parts: list[bytes] = []
    size = 0
    for part in (
        (compress(first, compression),)
        if second is None
        else _packed_parts(chain((first, second), left), compression)
    ):
        size += len(part)
        check_size(size)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _packed_parts(pieces: Iterable[bytes], compression: Compression) -> Iterator[bytes]:
    if compression is Compression.NONE:
        yield from pieces
    elif compression is Compression.SNAPPY:
        yield XERIAL_HEADER
        for piece in pieces:
            yield b"".join(_xerial_blocks(piece))
    else:
        packer = _stream_packer(compression)
        for piece in pieces:
            packer.compress(piece)
            yield bytes(packer.flush())
        yield bytes(packer.finish())


def _stream_packer(compression: Compression) -> Any:
    packer = codec(compression).Compressor
    if compression is Compression.LZ4:
        # Kafka reads no blocks that depend on the preceding one.
        return packer(content_checksum=False, block_linked=False)
    return packer()


def _xerial_blocks(data: bytes) -> Iterator[bytes]:
    pack = codec(Compression.SNAPPY).compress_raw
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(pack(data[start : start + _XERIAL_BLOCK_BYTES]))
        yield XERIAL_BLOCK_SIZE.pack(len(block))
        yield block


def codec(compression: Compression) -> Any:
    """Return the library's module for a compression."""
    import cramjam  # noqa: PLC0415 - only readers of compressed batches need it

    return getattr(cramjam, compression.name.lower())


def codec_error() -> type[Exception]:
    """Return the class of the library's errors for bytes that cannot be unpacked."""
    import cramjam  # noqa: PLC0415 - imported already at this point

    error: type[Exception] = cramjam.DecompressionError
    return error
