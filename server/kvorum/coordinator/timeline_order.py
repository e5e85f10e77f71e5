"""The order of Kafka's TimelineHashMap, which hashes differently from Java's own maps.

It decides which of two members of a group comes first where they share a bucket of a HashMap.
"""

from collections.abc import Reversible
from typing import Final

from kvorum.metadata.java_hash import string_hash

_CAPACITY_MIN: Final = 2
_LOAD_FACTOR: Final = 0.75
_FIBONACCI_FACTOR: Final = 0x9E3779B97F4A7C15
"""The odd number next to 2 to the power of 64 divided by the golden ratio."""
_LONG_BITS: Final = 64
_LONG_MASK: Final = (1 << _LONG_BITS) - 1
_SIGN: Final = 1 << 31


def timeline_order(keys: Reversible[str], most_keys: int) -> list[str]:
    """Return keys, given in the order in which they were put, in the order of the map.

    `most_keys` is the greatest number of keys that the map has had when a key was put, new or not,
    and before that: the map does not shrink.
    """
    shift = _LONG_BITS + 1 - _capacity(most_keys).bit_length()
    # Sorting is stable: of the same slot, the key that was put last comes first.
    newest_first = list(reversed(keys))
    return sorted(newest_first, key=lambda key: _spread(key) >> shift)


def _capacity(most_keys: int) -> int:
    """Return the capacity after a key was put among so many."""
    capacity = _CAPACITY_MIN
    while (most_keys + 1) * _LOAD_FACTOR > capacity:
        capacity *= 2
    return capacity


def _spread(key: str) -> int:
    signed = (string_hash(key) ^ _SIGN) - _SIGN
    return (signed * _FIBONACCI_FACTOR) & _LONG_MASK
