"""The hash of Java's strings, and its HashMap, where results can be observed from outside.

Kafka answers with the first error that it finds, and writes records in the order of its tables.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

FIRST_CAPACITY: Final = 16
LOAD_FACTOR: Final = 0.75
HASHES_MAX: Final = 8192
"""The number of hashes that are kept: members of large groups are put in order again and again."""
_UNIT: Final = struct.Struct(">H")


@lru_cache(maxsize=HASHES_MAX)
def string_hash(text: str) -> int:
    """Return ``String.hashCode`` as an unsigned number of 32 bits, over UTF-16 units."""
    found = 0
    for unit in text.encode() if text.isascii() else _utf_16_units(text):
        found = (31 * found + unit) & 0xFFFFFFFF
    return found


def _utf_16_units(text: str) -> Iterator[int]:
    encoded = text.encode("utf-16-be", "surrogatepass")
    return (unit for (unit,) in _UNIT.iter_unpack(encoded))


def spread_hash(text: str) -> int:
    """Return the hash from whose low bits a ``HashMap`` takes a text's bucket."""
    return spread_integer(string_hash(text))


def spread_integer(number: int) -> int:
    """Return the hash from whose low bits a ``HashMap`` takes an ``Integer``'s bucket."""
    unsigned = number & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)


def hash_table_order(texts: Iterable[str]) -> list[str]:
    """Return the distinct `texts` in the iteration order of a ``HashMap`` filled with them."""
    return _by_bucket(texts, spread_hash)


def integer_table_order(numbers: Iterable[int]) -> list[int]:
    """Return the distinct `numbers` of 32 bits in the order of a ``HashMap`` filled with them."""
    return _by_bucket(numbers, spread_integer)


def _by_bucket(keys: Iterable[Key], spread: Callable[[Key], int]) -> list[Key]:
    distinct = list(dict.fromkeys(keys))
    size = FIRST_CAPACITY
    while len(distinct) > size * LOAD_FACTOR:
        size *= 2
    # Sorting is stable: keys of the same bucket keep the order of insertion.
    return sorted(distinct, key=lambda key: spread(key) & (size - 1))


class JavaHashMap(Generic[Value]):
    """A map that yields its entries by Java's buckets; the table grows, and never shrinks.

    For groups the order decides which member leads when the leader goes, and it shows in records
    and answers.
    """

    __slots__ = ("_capacity", "_entries", "_sorted")

    def __init__(self) -> None:
        self._entries: dict[str, Value] = {}
        self._capacity = FIRST_CAPACITY
        self._sorted: tuple[str, ...] | None = ()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def get(self, key: str) -> Value | None:
        """Return the value of a key, None without one."""
        return self._entries.get(key)

    def set(self, key: str, value: Value) -> None:
        """Put a value; a new key comes last in its bucket."""
        if key not in self._entries:
            self._sorted = None
        self._entries[key] = value
        while len(self._entries) > self._capacity * LOAD_FACTOR:
            self._capacity *= 2

    def pop(self, key: str) -> Value | None:
        """Remove a key and return its value, None without one."""
        if key not in self._entries:
            return None
        self._sorted = None
        return self._entries.pop(key)

    def keys(self) -> tuple[str, ...]:
        """Return the keys in Java's order."""
        if self._sorted is None:
            mask = self._capacity - 1
            # Sorting is stable: keys of the same bucket keep the order of insertion.
            self._sorted = tuple(sorted(self._entries, key=lambda key: spread_hash(key) & mask))
        return self._sorted

    def values(self) -> tuple[Value, ...]:
        """Return the values in the order of `keys`."""
        return tuple(self._entries[key] for key in self.keys())
