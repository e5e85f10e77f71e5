"""The hash of Kafka's uuids, which decides their order in Java's hash tables."""

import struct
from typing import Final

_WORDS: Final = struct.Struct(">4I")


def uuid_hash(value: bytes) -> int:
    """Return ``Uuid.hashCode`` of 16 bytes as an unsigned number of 32 bits."""
    words: tuple[int, int, int, int] = _WORDS.unpack(value)
    return words[0] ^ words[1] ^ words[2] ^ words[3]
