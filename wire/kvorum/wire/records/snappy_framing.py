"""The framing of snappy-java, which Kafka uses: a header, then blocks after their sizes."""

import struct
from collections.abc import Iterator
from typing import Final

from kvorum.wire.records.compression_library import codec
from kvorum.wire.records.compression_type import Compression

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
"""The magic number, the version of the framing, and the lowest version that can read it."""
XERIAL_BLOCK_SIZE: Final = struct.Struct(">i")
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
"""The unpacked size of the blocks that snappy-java writes."""


def xerial_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the blocks of `data`, each after its packed size."""
    pack = codec(Compression.SNAPPY).compress_raw
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(pack(data[start : start + _XERIAL_BLOCK_BYTES]))
        yield XERIAL_BLOCK_SIZE.pack(len(block))
        yield block
