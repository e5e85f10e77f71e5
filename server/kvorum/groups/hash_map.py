"""Java's HashMap with strings as keys, for the order in which it yields them.

The order decides which member leads when the leader goes, and it shows in records and answers.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from kvorum.metadata.java_hash import spread_hash

Value = TypeVar("Value")

FIRST_CAPACITY: Final = 16
LOAD_FACTOR: Final = 0.75


class JavaHashMap(Generic[Value]):
    """A map that yields its entries by Java's buckets; the table grows, and never shrinks."""

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
