"""The hash of Java's strings, where its results can be observed from outside."""

from __future__ import annotations

from typing import Final

_SIGN_BIT: Final = 1 << 31


def string_hash(text: str) -> int:
    """Return ``String.hashCode`` as an unsigned number of 32 bits, over UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for index in range(0, len(units), 2):
        found = (31 * found + int.from_bytes(units[index : index + 2], "big")) & 0xFFFFFFFF
    return found


def spread_hash(text: str) -> int:
    """Return the hash from whose low bits a ``HashMap`` takes a key's bucket."""
    found = string_hash(text)
    return found ^ (found >> 16)


def partition_of_string(text: str, partition_count: int) -> int:
    """Return the partition of an internal topic that a group or a transactional id belongs to."""
    found = string_hash(text)
    if found == _SIGN_BIT:
        # The lowest number has no positive counterpart; Kafka takes 0.
        return 0
    magnitude = 2 * _SIGN_BIT - found if found > _SIGN_BIT else found
    return magnitude % partition_count
