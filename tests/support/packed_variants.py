"""Packed records in every form that a library may write, or a damaged one may have.

Each variant holds the same content, of one record, unless its name says otherwise.
"""

import gzip
import struct
import zlib
from typing import Final, NamedTuple

import cramjam

from kvorum.wire.records import Compression
from kvorum.wire.records.lz4_frames import xxh32_of_few

LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
LZ4_END: Final = bytes(4)
SKIPPABLE: Final = struct.pack("<II", 0x184D2A50, 3) + b"abc"
VERSION_1: Final = 0x40
INDEPENDENT: Final = 0x20
BLOCK_CHECKSUM: Final = 0x10
CONTENT_SIZE: Final = 0x08
CONTENT_CHECKSUM: Final = 0x04
RESERVED: Final = 0x02
DICTIONARY: Final = 0x01
UNPACKED: Final = 0x8000_0000
BLOCKS_64_KIB: Final = 0x40
USUAL: Final = VERSION_1 | INDEPENDENT
ZSTD_MAGIC: Final = struct.pack("<I", 0xFD2FB528)
XERIAL: Final = b"\x82SNAPPY\x00"


class Packed(NamedTuple):
    """Bytes of a batch behind its header."""

    compression: Compression
    data: bytes


def word(number: int) -> bytes:
    return struct.pack("<I", number)


def lz4_frame(
    content: bytes,
    flags: int = USUAL,
    *,
    size: int | None = None,
    descriptor: int = BLOCKS_64_KIB,
    wrong: str = "",
    is_packed: bool = False,
) -> bytes:
    """Return a frame of one block; `wrong` names the checksum that is wrong."""
    head = bytes((flags, descriptor))
    if flags & CONTENT_SIZE:
        head += struct.pack("<Q", len(content) if size is None else size)
    if flags & DICTIONARY:
        head += word(7)
    block = bytes(cramjam.lz4.compress_block(content, store_size=False)) if is_packed else content
    check = (xxh32_of_few(head) >> 8 & 0xFF) ^ (wrong == "header")
    parts = [LZ4_MAGIC, head, bytes((check,)), word(len(block) | (0 if is_packed else UNPACKED))]
    parts.append(block)
    if flags & BLOCK_CHECKSUM:
        parts.append(word(xxh32_of_few(block) ^ (wrong == "block")))
    parts.append(LZ4_END)
    if flags & CONTENT_CHECKSUM:
        parts.append(word(xxh32_of_few(content) ^ (wrong == "content")))
    return b"".join(parts)


def lz4_variants(content: bytes) -> dict[str, bytes]:
    frame = lz4_frame(content)
    middle = len(content) // 2
    first, second = content[:middle], content[middle:]
    two_blocks = b"".join(
        (frame[:7], *(word(len(part) | UNPACKED) + part for part in (first, second)), LZ4_END)
    )
    return {
        "usual": frame,
        "packed block": lz4_frame(content, is_packed=True),
        "two blocks": two_blocks,
        "linked blocks": lz4_frame(content, VERSION_1),
        "linked blocks, all other flags": lz4_frame(
            content, VERSION_1 | BLOCK_CHECKSUM | CONTENT_SIZE | CONTENT_CHECKSUM
        ),
        "blocks with checksum": lz4_frame(content, USUAL | BLOCK_CHECKSUM),
        "block with wrong checksum": lz4_frame(content, USUAL | BLOCK_CHECKSUM, wrong="block"),
        "content size": lz4_frame(content, USUAL | CONTENT_SIZE),
        "wrong content size": lz4_frame(content, USUAL | CONTENT_SIZE, size=len(content) + 1),
        "no content size": lz4_frame(content, USUAL | CONTENT_SIZE, size=0),
        "content checksum": lz4_frame(content, USUAL | CONTENT_CHECKSUM),
        "wrong content checksum": lz4_frame(content, USUAL | CONTENT_CHECKSUM, wrong="content"),
        "content checksum is cut": lz4_frame(content, USUAL | CONTENT_CHECKSUM)[:-1],
        "dictionary": lz4_frame(content, USUAL | DICTIONARY),
        "reserved flag": lz4_frame(content, USUAL | RESERVED),
        "version 0": lz4_frame(content, INDEPENDENT),
        "version 2": lz4_frame(content, 0x80 | INDEPENDENT),
        "wrong header checksum": lz4_frame(content, wrong="header"),
        "blocks of 4 MiB": lz4_frame(content, descriptor=0x70),
        "blocks of unknown size": lz4_frame(content, descriptor=0x30),
        "reserved bit of the block size": lz4_frame(content, descriptor=0xC0),
        "reserved low bits of the block size": lz4_frame(content, descriptor=0x41),
        "without an end": frame[:-4],
        "end is cut": frame[:-2],
        "cut in the block": frame[:-6],
        "cut in the header": frame[:6],
        "nothing": b"",
        "bytes behind": frame + b"\x00",
        "four bytes behind": frame + b"\x00\x01\x02\x03",
        "empty frame behind": frame + lz4_frame(b""),
        "skippable frame behind": frame + SKIPPABLE,
        "skippable frame before": SKIPPABLE + frame,
        "empty frame before": lz4_frame(b"") + frame,
        "empty block before": frame[:7] + word(UNPACKED) + frame[7:],
        "empty block behind": frame[:-4] + word(UNPACKED) + LZ4_END,
        "empty block instead of an end": frame[:-4] + word(UNPACKED),
        "two frames": lz4_frame(first) + lz4_frame(second),
        "same frame again": frame + frame,
        "legacy frame": word(0x184C2102)
        + word(len(content) + 1)
        + bytes(cramjam.lz4.compress_block(content, store_size=False)),
        "content is longer than said": lz4_frame(content + b"\x00"),
    }


def gzip_member(content: bytes, flags: int = 0, extra: bytes = b"", *, wrong: str = "") -> bytes:
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(content) + packer.flush()
    head = bytes((0x1F, 0x8B, 8, flags, 0, 0, 0, 0, 0, 255)) + extra
    if flags & 0x02:
        head += struct.pack("<H", (zlib.crc32(head) & 0xFFFF) ^ (wrong == "header"))
    end = struct.pack(
        "<II", zlib.crc32(content) ^ (wrong == "content"), len(content) + (wrong == "size")
    )
    return head + body + end


def gzip_variants(content: bytes) -> dict[str, bytes]:
    member = gzip.compress(content, mtime=0)
    first, second = content[:4], content[4:]
    return {
        "usual": member,
        "name": gzip_member(content, 0x08, b"name\x00"),
        "comment": gzip_member(content, 0x10, b"comment\x00"),
        "extra field": gzip_member(content, 0x04, b"\x03\x00abc"),
        "text flag": gzip_member(content, 0x01),
        "reserved flags": gzip_member(content, 0xE0),
        "header checksum": gzip_member(content, 0x02),
        "wrong header checksum": gzip_member(content, 0x02, wrong="header"),
        "wrong content checksum": gzip_member(content, wrong="content"),
        "wrong content size": gzip_member(content, wrong="size"),
        "other method": member[:2] + b"\x07" + member[3:],
        "two members": gzip.compress(first) + gzip.compress(second),
        "member of nothing behind": member + gzip.compress(b""),
        "member of nothing before": gzip.compress(b"") + member,
        "same member again": member + member,
        "a byte behind": member + b"\x00",
        "zeros behind": member + bytes(64),
        "other bytes behind": member + b"trailing bytes that are no member of gzip",
        "half a member behind": member + member[:-5],
        "half a header behind": member + member[:5],
        "cut in the checksum": member[:-6],
        "without checksum": member[:-8],
        "cut in the content": member[:-12],
        "cut in the header": member[:8],
        "nothing": b"",
        "zlib": zlib.compress(content),
        "content is longer than said": gzip.compress(content + b"\x00"),
    }


def xerial(*blocks: bytes, version: int = 1, compatible: int = 1) -> bytes:
    head = XERIAL + struct.pack(">ii", version, compatible)
    return head + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def snappy_variants(content: bytes) -> dict[str, bytes]:
    def raw(data: bytes) -> bytes:
        return bytes(cramjam.snappy.compress_raw(data))

    block = raw(content)
    usual = xerial(block)
    first, second = raw(content[:4]), raw(content[4:])
    return {
        "usual": usual,
        "two blocks": xerial(first, second),
        "raw block": block,
        "two raw blocks": first + second,
        "raw block and a byte": block + b"\x00",
        "raw block cut": block[:-1],
        "version 0": xerial(block, version=0),
        "version 2": xerial(block, version=2),
        "version -1": xerial(block, version=-1),
        "compatible version 0": xerial(block, compatible=0),
        "compatible version 2": xerial(block, compatible=2),
        "little-endian versions": xerial(block, version=1 << 24, compatible=1 << 24),
        "two streams": xerial(first) + xerial(second),
        "three streams": xerial(first) + xerial() + xerial(second, compatible=3, version=9),
        "two streams, the second's header cut": usual + xerial()[:-1],
        "two streams, the second of version 0": xerial(first) + xerial(second, version=0),
        "empty stream before": xerial() + usual,
        "empty stream behind": usual + xerial(),
        "same stream again": usual + usual,
        "block of nothing": xerial(raw(b""), block),
        "block of nothing behind": xerial(block, raw(b"")),
        "block of no bytes": xerial(b"", block),
        "block of no bytes behind": xerial(block, b""),
        "negative size behind": usual + struct.pack(">i", -1),
        "size beyond the end": usual + struct.pack(">i", 100),
        "a byte behind": usual + b"\x00",
        "four zeros behind": usual + bytes(4),
        "eight zeros behind": usual + bytes(8),
        "cut in the block": usual[:-2],
        "cut in the block's size": usual[:18],
        "cut in the header": usual[:12],
        "header alone": usual[:16],
        "nothing": b"",
        "framing of the snappy project": bytes(cramjam.snappy.compress(content)),
        "content is longer than said": xerial(raw(content + b"\x00")),
    }


def zstd_frame(content: bytes, *, window_log: int, extra_flags: int = 0) -> bytes:
    """Return a frame of one block that is not packed, which wants a window of some size."""
    descriptor = bytes((extra_flags, (window_log - 10) << 3))
    return ZSTD_MAGIC + descriptor + struct.pack("<I", 1 | len(content) << 3)[:3] + content


def zstd_single_segment(content: bytes, *, size: int | None = None, dictionary: int = 0) -> bytes:
    said = len(content) if size is None else size
    head = bytes((0x20 | (1 if dictionary else 0),)) + (bytes((dictionary,)) if dictionary else b"")
    block = struct.pack("<I", 1 | len(content) << 3)[:3] + content
    return ZSTD_MAGIC + head + bytes((said,)) + block


def zstd_variants(content: bytes) -> dict[str, bytes]:
    frame = bytes(cramjam.zstd.compress(content))
    first, second = (bytes(cramjam.zstd.compress(part)) for part in (content[:4], content[4:]))
    empty = bytes(cramjam.zstd.compress(b""))
    return {
        "usual": frame,
        "single segment": zstd_single_segment(content),
        "wrong content size": zstd_single_segment(content, size=len(content) + 1),
        "content size is too small": zstd_single_segment(content, size=len(content) - 1),
        "dictionary": zstd_single_segment(content, dictionary=7),
        "wrong checksum": zstd_frame(content, window_log=20, extra_flags=0x04)
        + b"\x00\x01\x02\x03",
        "checksum is missing": zstd_frame(content, window_log=20, extra_flags=0x04),
        "reserved flag": zstd_frame(content, window_log=20, extra_flags=0x08),
        "unused flag": zstd_frame(content, window_log=20, extra_flags=0x10),
        **{
            f"window of 2 to the {log}": zstd_frame(content, window_log=log)
            for log in (10, 23, 24, 27, 28, 31, 41)
        },
        "two frames": first + second,
        "empty frame behind": frame + empty,
        "empty frame before": empty + frame,
        "same frame again": frame + frame,
        "skippable frame behind": frame + SKIPPABLE,
        "skippable frame before": SKIPPABLE + frame,
        "skippable frame between": first + SKIPPABLE + second,
        "skippable frame is cut": frame + SKIPPABLE[:-1],
        "a byte behind": frame + b"\x00",
        "four zeros behind": frame + bytes(4),
        "half a frame behind": frame + frame[:-2],
        "cut in the frame": frame[:-2],
        "cut in the header": frame[:3],
        "nothing": b"",
        "content is longer than said": bytes(cramjam.zstd.compress(content + b"\x00")),
        "checked flag alone": ZSTD_MAGIC + b"\x24" + frame[5:],
    }


def packed_variants(content: bytes) -> dict[str, Packed]:
    """Return variants of packed content of up to 15 bytes, by name."""
    return {
        f"{compression.name.lower()}: {name}": Packed(compression, data)
        for compression, variants in (
            (Compression.LZ4, lz4_variants(content)),
            (Compression.GZIP, gzip_variants(content)),
            (Compression.SNAPPY, snappy_variants(content)),
            (Compression.ZSTD, zstd_variants(content)),
        )
        for name, data in variants.items()
    }
