"""The framing of snappy-java, which Kafka uses, written and read.

A header comes first, then blocks, each after its packed size.
"""

import struct
from collections.abc import Iterator
from typing import Final

from kvorum.wire.records.compression_library import codec, codec_error
from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.decompression_errors import damaged
from kvorum.wire.records.size_check import SizeCheck

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
"""The magic number, the version of the framing, and the lowest version that can read it."""
_XERIAL_VERSION: Final = struct.Struct(">i")
_XERIAL_VERSION_MIN: Final = 1
_XERIAL_BLOCK_SIZE: Final = struct.Struct(">i")
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
"""The unpacked size of the blocks that snappy-java writes."""
# A snappy block repeats at most 64 bytes for three of its own: a higher ratio is forged.
_SNAPPY_RATIO_MAX: Final = 22


def xerial_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the blocks of `data`, each after its packed size."""
    pack = codec(Compression.SNAPPY).compress_raw
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(pack(data[start : start + _XERIAL_BLOCK_BYTES]))
        yield _XERIAL_BLOCK_SIZE.pack(len(block))
        yield block


def snappy_pieces(data: bytes, check_size: SizeCheck) -> Iterator[bytes]:
    """Unpack blocks in snappy-java's framing, or one bare block, which other clients write.

    As in snappy-java, one framing may follow another, and up to three bytes the last block.
    """
    if not data.startswith(_XERIAL_MAGIC):
        yield _snappy_block(data, 0, check_size)
        return
    if len(data) < len(XERIAL_HEADER):
        raise damaged(Compression.SNAPPY, "ends inside its header", len(data))
    unpacked_size = 0
    pos = len(XERIAL_HEADER)
    while pos + _XERIAL_BLOCK_SIZE.size <= len(data):
        if data.startswith(_XERIAL_MAGIC, pos):
            pos = _next_xerial(data, pos)
            continue
        (size,) = _XERIAL_BLOCK_SIZE.unpack_from(data, pos)
        pos += _XERIAL_BLOCK_SIZE.size
        if not 0 <= size <= len(data) - pos:
            raise damaged(Compression.SNAPPY, f"a block of {size} bytes", pos)
        block = _snappy_block(data[pos : pos + size], unpacked_size, check_size)
        unpacked_size += len(block)
        yield block
        pos += size


def _next_xerial(data: bytes, pos: int) -> int:
    """Return the position after the header of a framing that follows another one."""
    end = pos + len(XERIAL_HEADER)
    if end > len(data):
        raise damaged(Compression.SNAPPY, "ends inside its header", len(data))
    (version,) = _XERIAL_VERSION.unpack_from(data, pos + len(_XERIAL_MAGIC))
    if version < _XERIAL_VERSION_MIN:
        raise damaged(Compression.SNAPPY, f"version {version} of its framing", pos)
    return end


def _snappy_block(data: bytes, size_before: int, check_size: SizeCheck) -> bytes:
    snappy = codec(Compression.SNAPPY)
    try:
        # A block begins with its unpacked size, so a decompression bomb is found here.
        size = snappy.decompress_raw_len(data)
        if size > len(data) * _SNAPPY_RATIO_MAX:
            problem = f"a block of {len(data)} bytes says that it holds {size}"
            raise damaged(Compression.SNAPPY, problem)
        check_size(size_before + size)
        return bytes(snappy.decompress_raw(data))
    except codec_error() as error:
        raise damaged(Compression.SNAPPY, str(error)) from error
