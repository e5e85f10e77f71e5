"""Compression of a batch's records: gzip, snappy in both framings, lz4 and zstd.

A library is imported when the first batch needs it. The unpacked size is limited before bytes are
unpacked, because the bytes come from outside.
"""

import struct
from enum import IntEnum
from typing import Any, Final

from kvorum.wire.errors import BatchTooLargeError, CorruptBatchError

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


DECOMPRESSED_BYTES_MAX = 5 * 1024 * 1024
"""Most that a batch may unpack to unless its reader allows more, which kafka-dump-log takes too.

A few bytes can unpack to all of it, and reading holds it twice: packed bytes from an unknown peer
take at most 16 MiB besides their own size.
"""

STORED_UNPACKED_BYTES_MAX = 256 * 1024 * 1024
"""Most that a batch of a log may unpack to: it was accepted once, so this is far above usual."""

RECORD_BYTES_MAX = 2**31 - 9
"""Kafka's own limit of one record that was packed: the longest array of Java."""

# Room for what is unpacked is first guessed, then multiplied: most batches take a few KiB, and
# setting aside as much as is allowed would cost more than unpacking them.
_FIRST_ROOM_BYTES = 32 * 1024
_USUAL_RATIO = 4
_ROOM_GROWTH = 8
# A snappy block repeats at most 64 bytes for three of its own: a higher ratio is forged.
_SNAPPY_RATIO_MAX = 22
_WHAT = "compressed batch"
# The framing of snappy-java, which Kafka uses: this, two version numbers, then sized blocks.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_VERSION = struct.Struct(">i")
_XERIAL_VERSION_MIN = 1
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_SIZE = struct.Struct(">i")


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
        return _compress_xerial(data)
    if compression is Compression.LZ4:
        # Kafka reads no blocks that depend on the preceding one.
        packer = _codec(compression).Compressor(content_checksum=False, block_linked=False)
        packer.compress(data)
        return bytes(packer.finish())
    return bytes(_codec(compression).compress(data))


def decompress(
    data: bytes, compression: Compression, *, size_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Return the unpacked bytes; as in Kafka, what lies after a first lz4 frame is not read.

    Raises `BatchTooLargeError` when there are more than `size_max`, `CorruptBatchError` when they
    cannot be unpacked.
    """
    if compression is Compression.NONE:
        return data
    if compression is Compression.SNAPPY:
        return _decompress_snappy(data, size_max)
    if compression is Compression.LZ4:
        data = first_lz4_frame(data)
    return _decompress_stream(data, compression, size_max)


def _decompress_stream(data: bytes, compression: Compression, size_max: int) -> bytes:
    room = min(size_max, max(_FIRST_ROOM_BYTES, _USUAL_RATIO * len(data)))
    while True:
        unpacked = _unpack_within(data, compression, room)
        if unpacked is not None:
            return unpacked
        if room == size_max:
            raise _too_large(compression, size_max)
        room = min(size_max, room * _ROOM_GROWTH)


def _unpack_within(data: bytes, compression: Compression, room: int) -> bytes | None:
    """Return the unpacked bytes, None if there are more than `room`."""
    # One byte more shows the difference between "exactly as much" and "more".
    unpacked = bytearray(room + 1)
    try:
        size = _codec(compression).decompress_into(data, unpacked)
    except _errors() as error:
        if "whole buffer" in str(error):
            return None
        raise CorruptBatchError(_WHAT, f"{compression.name.lower()}: {error}") from error
    return bytes(memoryview(unpacked)[:size]) if size <= room else None


def _compress_xerial(data: bytes) -> bytes:
    codec = _codec(Compression.SNAPPY)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(codec.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_BLOCK_SIZE.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, size_max: int) -> bytes:
    """Unpack blocks in snappy-java's framing, or one bare block, which other clients write.

    As in snappy-java, one framing may follow another, and up to three bytes the last block.
    """
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, size_max)
    if len(data) < len(_XERIAL_HEADER):
        raise CorruptBatchError(_WHAT, "snappy: ends inside its header", offset=len(data))
    unpacked: list[bytes] = []
    left = size_max
    pos = len(_XERIAL_HEADER)
    while pos + _BLOCK_SIZE.size <= len(data):
        if data.startswith(_XERIAL_MAGIC, pos):
            pos = _next_xerial(data, pos)
            continue
        (size,) = _BLOCK_SIZE.unpack_from(data, pos)
        pos += _BLOCK_SIZE.size
        if not 0 <= size <= len(data) - pos:
            raise CorruptBatchError(_WHAT, f"snappy: a block of {size} bytes", offset=pos)
        block = _snappy_block(data[pos : pos + size], left)
        unpacked.append(block)
        left -= len(block)
        pos += size
    return b"".join(unpacked)


def _next_xerial(data: bytes, pos: int) -> int:
    """Return the position after the header of a framing that follows another one."""
    end = pos + len(_XERIAL_HEADER)
    if end > len(data):
        raise CorruptBatchError(_WHAT, "snappy: ends inside its header", offset=len(data))
    (version,) = _XERIAL_VERSION.unpack_from(data, pos + len(_XERIAL_MAGIC))
    if version < _XERIAL_VERSION_MIN:
        raise CorruptBatchError(_WHAT, f"snappy: version {version} of its framing", offset=pos)
    return end


def _snappy_block(data: bytes, size_max: int) -> bytes:
    codec = _codec(Compression.SNAPPY)
    try:
        # A block begins with its unpacked size, so a decompression bomb is found here.
        size = codec.decompress_raw_len(data)
        if size > len(data) * _SNAPPY_RATIO_MAX:
            problem = f"snappy: a block of {len(data)} bytes says that it holds {size}"
            raise CorruptBatchError(_WHAT, problem)
        if size > size_max:
            raise _too_large(Compression.SNAPPY, size_max)
        return bytes(codec.decompress_raw(data))
    except _errors() as error:
        raise CorruptBatchError(_WHAT, f"snappy: {error}") from error


def _too_large(compression: Compression, size_max: int) -> BatchTooLargeError:
    return BatchTooLargeError(
        _WHAT, f"{compression.name.lower()}: unpacks to more than {size_max} bytes"
    )


def _codec(compression: Compression) -> Any:
    import cramjam  # noqa: PLC0415 - only readers of compressed batches need it

    return getattr(cramjam, compression.name.lower())


def _errors() -> type[Exception]:
    import cramjam  # noqa: PLC0415 - imported already at this point

    error: type[Exception] = cramjam.DecompressionError
    return error
