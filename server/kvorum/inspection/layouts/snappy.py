"""The framing of snappy-java: a magic, two versions, then blocks behind their sizes."""

from __future__ import annotations

from typing import Final

import cramjam
from construct import (
    Const,
    ConstructError,
    GreedyBytes,
    GreedyRange,
    Int32sb,
    Prefixed,
    Struct,
    Terminated,
)

_MAGIC: Final = b"\x82SNAPPY\x00"
_FRAMED: Final = Struct(
    "magic" / Const(_MAGIC),
    "version" / Int32sb,
    "compatible_version" / Int32sb,
    "blocks" / GreedyRange(Prefixed(Int32sb, GreedyBytes)),
    "end" / Terminated,
)


def unpack_snappy(packed: bytes) -> bytes:
    """Return the unpacked bytes of framed blocks, or of one block without a frame.

    Raises ValueError or the library's DecompressionError.
    """
    if not packed.startswith(_MAGIC):
        return bytes(cramjam.snappy.decompress_raw(packed))
    try:
        framed = _FRAMED.parse(packed)
    except ConstructError as error:
        raise ValueError(f"snappy: {error}") from error
    return b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in framed.blocks)
