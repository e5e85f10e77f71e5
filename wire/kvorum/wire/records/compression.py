"""Pack bytes as Kafka's own producers do, at once or piece by piece."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from kvorum.wire.records.compression_library import codec
from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.size_check import SizeCheck, any_size
from kvorum.wire.records.snappy_framing import XERIAL_HEADER, xerial_blocks


def compress(data: bytes, compression: Compression) -> bytes:
    """Return `data` packed the way Kafka's own producers pack it."""
    if compression is Compression.NONE:
        return data
    if compression is Compression.SNAPPY:
        return b"".join((XERIAL_HEADER, *xerial_blocks(data)))
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
    packed = (
        iter((compress(first, compression),))
        if second is None
        else _packed_parts(chain((first, second), left), compression)
    )
    for part in packed:
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
            yield b"".join(xerial_blocks(piece))
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
