"""Lz4 frames as Kafka reads them, which is not as the libraries of other languages do.

Kafka's own decoder knows no blocks that depend on the preceding one and no dictionaries, and reads
one frame, whatever lies after it. Many libraries link blocks by default.

In messages of format 0 the checksum of the header is wrong: Kafka took it over the frame's magic
number too for years (KAFKA-3160), so that no other decoder accepts such a frame.
"""

import struct
from typing import Final

_FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
_INDEPENDENT_FLAG: Final = 0x20
_BLOCK_CHECKSUM_FLAG: Final = 0x10
_CONTENT_SIZE_FLAG: Final = 0x08
_CONTENT_CHECKSUM_FLAG: Final = 0x04
_DICTIONARY_FLAG: Final = 0x01
_CONTENT_SIZE_BYTES: Final = 8
_DICTIONARY_BYTES: Final = 4
_CHECKSUM_BYTES: Final = 4
_BLOCK_SIZE_MASK: Final = 0x7FFF_FFFF
# The constants of xxHash.
_PRIME_1: Final = 0x9E37_79B1
_PRIME_2: Final = 0x85EB_CA77
_PRIME_3: Final = 0xC2B2_AE3D
_PRIME_4: Final = 0x27D4_EB2F
_PRIME_5: Final = 0x1656_67B1
_MASK: Final = 0xFFFF_FFFF
_WORD = struct.Struct("<I")


def unreadable_by_kafka(data: bytes | memoryview) -> str | None:
    """Return why Kafka cannot read what other decoders can, None where both or neither can."""
    start = len(_FRAME_MAGIC)
    if data[:start] != _FRAME_MAGIC:
        return "does not begin with a frame"
    flags = data[start] if len(data) > start else _INDEPENDENT_FLAG
    if not flags & _INDEPENDENT_FLAG:
        return "the blocks of its frame depend on each other"
    return "its frame needs a dictionary" if flags & _DICTIONARY_FLAG else None


def first_lz4_frame(data: bytes) -> bytes:
    """Return the frame that `data` begins with, or all of it without a whole one."""
    start = len(_FRAME_MAGIC)
    if not data.startswith(_FRAME_MAGIC) or len(data) <= start:
        return data
    flags = data[start]
    # Two bytes of flags, and one of a checksum behind what they announce.
    pos = start + 3
    pos += _CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE_FLAG else 0
    pos += _DICTIONARY_BYTES if flags & _DICTIONARY_FLAG else 0
    behind_block = _WORD.size + (_CHECKSUM_BYTES if flags & _BLOCK_CHECKSUM_FLAG else 0)
    last = len(data) - _WORD.size
    while pos <= last:
        size = _WORD.unpack_from(data, pos)[0] & _BLOCK_SIZE_MASK
        if not size:
            end = pos + _WORD.size
            return data[: end + (_CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM_FLAG else 0)]
        pos += size + behind_block
    return data


def repair_lz4_header(frame: bytes) -> bytes:
    """Return `frame` with the right checksum of its header; other bytes come back as they are."""
    start = len(_FRAME_MAGIC)
    if not frame.startswith(_FRAME_MAGIC) or len(frame) <= start:
        return frame
    end = start + 2 + (_CONTENT_SIZE_BYTES if frame[start] & _CONTENT_SIZE_FLAG else 0)
    if len(frame) <= end:
        return frame
    checksum = xxh32_of_few(frame[start:end]) >> 8 & 0xFF
    return frame[:end] + bytes([checksum]) + frame[end + 1 :]


def xxh32_of_few(data: bytes) -> int:
    """Return the 32-bit xxHash, seed 0, of less than 16 bytes."""
    words = len(data) // _WORD.size * _WORD.size
    total = _PRIME_5 + len(data)
    for (word,) in _WORD.iter_unpack(data[:words]):
        total = _rotated(total + word * _PRIME_3, 17) * _PRIME_4
    for byte in data[words:]:
        total = _rotated(total + byte * _PRIME_5, 11) * _PRIME_1
    total &= _MASK
    total = (total ^ total >> 15) * _PRIME_2 & _MASK
    total = (total ^ total >> 13) * _PRIME_3 & _MASK
    return total ^ total >> 16


def _rotated(number: int, bits: int) -> int:
    number &= _MASK
    return (number << bits | number >> 32 - bits) & _MASK
