"""The frames of lz4: Kafka's limits, the header of format 0, and frames cut into small ones.

The library that unpacks a frame returns all of it. A frame of blocks is therefore cut into frames
of a few of its blocks, which have the same header but for what it says of the whole content.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.decompression_errors import damaged

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
_HEADER_BYTES_MIN: Final = 3
_BLOCK_CODE_SHIFT: Final = 4
_BLOCK_CODE_MASK: Final = 0x07
_BLOCK_CODE_MIN: Final = 4
"""The code of the smallest size that a block may have; each next one is four times as large."""
_BLOCK_BYTES_MIN: Final = 64 * 1024
_END_MARK: Final = bytes(4)
# The constants of xxHash.
_PRIME_1: Final = 0x9E37_79B1
_PRIME_2: Final = 0x85EB_CA77
_PRIME_3: Final = 0xC2B2_AE3D
_PRIME_4: Final = 0x27D4_EB2F
_PRIME_5: Final = 0x1656_67B1
_MASK: Final = 0xFFFF_FFFF
_WORD = struct.Struct("<I")


def unreadable_by_kafka(data: bytes | memoryview) -> str | None:
    """Return why Kafka cannot read what other decoders can, None where both or neither can.

    Kafka's own decoder knows no blocks that depend on the preceding one and no dictionaries, and
    reads one frame, whatever lies after it. Many libraries link blocks by default.

    In messages of format 0 the checksum of the header is wrong: Kafka took it over the frame's
    magic number too for years (KAFKA-3160), so that no other decoder accepts such a frame.
    """
    start = len(_FRAME_MAGIC)
    if data[:start] != _FRAME_MAGIC:
        return "does not begin with a frame"
    flags = data[start] if len(data) > start else _INDEPENDENT_FLAG
    if not flags & _INDEPENDENT_FLAG:
        return "the blocks of its frame depend on each other"
    return "its frame needs a dictionary" if flags & _DICTIONARY_FLAG else None


def first_lz4_frame(data: bytes) -> bytes:
    """Return the frame that `data` begins with, or all of it without a whole one."""
    frame = _frame_at_start(data)
    if frame is None:
        return data
    pos = frame.begin
    bytes_after_block = frame.bytes_after_block
    while (size := _block_size(data, pos)) > 0:
        pos += size + bytes_after_block
    if size < 0:
        return data
    end = pos + _WORD.size
    return data[: end + (_CHECKSUM_BYTES if frame.flags & _CONTENT_CHECKSUM_FLAG else 0)]


def frames_of_few_blocks(data: bytes, bytes_max: int) -> Iterator[bytes]:
    """Cut the frame that `data` begins with into frames of few blocks.

    Each unpacks to `bytes_max` at most, or is one block. The last one has no end where `data` ends
    too early. The checksum and the size of the whole content are lost: as in Kafka, these are not
    verified then. Raises `DecompressionError` for a frame that Kafka does not read.
    """
    problem = unreadable_by_kafka(data)
    if problem is not None:
        raise damaged(Compression.LZ4, problem)
    frame = _frame_at_start(data)
    stored_header = b"" if frame is None else data[: frame.begin]
    if frame is None or repair_lz4_header(stored_header) != stored_header:
        raise damaged(Compression.LZ4, "a wrong header")
    header = frame.plain_header
    bytes_after_block = frame.bytes_after_block
    blocks_max = max(1, bytes_max // frame.block_bytes_max)
    count = 0
    begin = pos = frame.begin
    while (size := _block_size(data, pos)) > 0:
        if count == blocks_max:
            yield b"".join((header, data[begin:pos], _END_MARK))
            begin = pos
            count = 0
        pos += size + bytes_after_block
        count += 1
    end_mark = _END_MARK if size == 0 else b""
    yield b"".join((header, data[begin:pos], end_mark))


class _Frame(NamedTuple):
    """The content of a frame's header; `begin` is the position of the first block."""

    flags: int
    descriptor: int
    begin: int

    @property
    def block_bytes_max(self) -> int:
        """The largest size of a block, unpacked."""
        code = self.descriptor >> _BLOCK_CODE_SHIFT & _BLOCK_CODE_MASK
        return _BLOCK_BYTES_MIN << 2 * max(0, code - _BLOCK_CODE_MIN)

    @property
    def plain_header(self) -> bytes:
        """A header for the same blocks that says nothing of the whole content."""
        flags = self.flags & ~(_CONTENT_SIZE_FLAG | _CONTENT_CHECKSUM_FLAG)
        return repair_lz4_header(_FRAME_MAGIC + bytes((flags, self.descriptor, 0)))

    @property
    def bytes_after_block(self) -> int:
        """The bytes of a block besides its packed ones."""
        return _WORD.size + (_CHECKSUM_BYTES if self.flags & _BLOCK_CHECKSUM_FLAG else 0)


def _frame_at_start(data: bytes) -> _Frame | None:
    """Return the content of the header that `data` begins with; None without a header."""
    start = len(_FRAME_MAGIC)
    if not data.startswith(_FRAME_MAGIC) or len(data) < start + _HEADER_BYTES_MIN:
        return None
    flags = data[start]
    # Two bytes of flags, and one of a checksum behind what they announce.
    begin = start + _HEADER_BYTES_MIN
    begin += _CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE_FLAG else 0
    begin += _DICTIONARY_BYTES if flags & _DICTIONARY_FLAG else 0
    return _Frame(flags, data[start + 1], begin)


def _block_size(data: bytes, pos: int) -> int:
    """Return the size of the block at `pos`; 0 for the end mark, -1 where `data` ends before it."""
    if pos + _WORD.size > len(data):
        return -1
    size: int = _WORD.unpack_from(data, pos)[0] & _BLOCK_SIZE_MASK
    return size


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
