"""The header of lz4 frames in messages of format 0, whose checksum Kafka got wrong for years.

It was taken over the frame's magic number too (KAFKA-3160), so that no decoder accepts such a
frame; Kafka itself ignores the checksum. Here it is replaced by the right one.
"""

from __future__ import annotations

import struct
from typing import Final

_FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
_CONTENT_SIZE_FLAG: Final = 0x08
_CONTENT_SIZE_BYTES: Final = 8
# The constants of xxHash.
_PRIME_1: Final = 0x9E37_79B1
_PRIME_2: Final = 0x85EB_CA77
_PRIME_3: Final = 0xC2B2_AE3D
_PRIME_4: Final = 0x27D4_EB2F
_PRIME_5: Final = 0x1656_67B1
_MASK: Final = 0xFFFF_FFFF
_WORD = struct.Struct("<I")


def repair_lz4_header(frame: bytes) -> bytes:
    """Return `frame` with the right checksum of its header; other bytes come back as they are."""
    start = len(_FRAME_MAGIC)
    if not frame.startswith(_FRAME_MAGIC) or len(frame) <= start:
        return frame
    end = start + 2 + (_CONTENT_SIZE_BYTES if frame[start] & _CONTENT_SIZE_FLAG else 0)
    if len(frame) <= end:
        return frame
    checksum = _xxh32_of_few(frame[start:end]) >> 8 & 0xFF
    return frame[:end] + bytes([checksum]) + frame[end + 1 :]


def _xxh32_of_few(data: bytes) -> int:
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
