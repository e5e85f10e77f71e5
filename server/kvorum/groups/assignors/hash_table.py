"""The buckets of Java's HashMap, where the history of a table decides its order.

Left out are the trees into which Java turns a bucket of nine keys in a table of 64 or more. Nine
partitions of a topic share such a bucket only if the topic has more than 512 partitions.
"""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from kvorum.metadata.java_hash import FIRST_CAPACITY, LOAD_FACTOR

Key = TypeVar("Key")

_BUCKET_KEYS_MAX: Final = 8
"""The number of keys above which Java has a bucket split, by doubling a small table."""
_SMALL_CAPACITY_MAX: Final = 32


def capacity_for(count: int) -> int:
    """Return the capacity of a table that is made for `count` keys: a power of two."""
    return capacity_of(int(count / LOAD_FACTOR) + 1)


def capacity_of(asked: int) -> int:
    """Return the capacity of a table for which the program asks for `asked` buckets."""
    return 1 << max(asked - 1, 0).bit_length()


def set_capacity(count: int) -> int:
    """Return the capacity of a ``HashSet`` that is a copy of a collection of `count` elements."""
    return max(capacity_for(count), FIRST_CAPACITY)


class HashTable(Generic[Key]):
    """The distinct keys of a ``HashMap`` or ``HashSet`` by their buckets."""

    __slots__ = ("_buckets", "_capacity", "_count", "_hash")

    def __init__(
        self, hash_of: Callable[[Key], int], capacity: int, keys: Iterable[Key] = ()
    ) -> None:
        self._hash = hash_of
        self._capacity = capacity
        self._count = 0
        self._buckets: dict[int, list[Key]] = {}
        for key in keys:
            self.put(key)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: Key) -> bool:
        return key in self._bucket(key)

    def put(self, key: Key) -> None:
        """Add a key as the last of its bucket (``put``); the table grows when it is full."""
        bucket = self._bucket(key)
        if key in bucket:
            return
        bucket.append(key)
        self._count += 1
        if len(bucket) > _BUCKET_KEYS_MAX and self._capacity <= _SMALL_CAPACITY_MAX:
            self._double()
        if self._is_over_full():
            self._double()

    def compute_if_absent(self, key: Key) -> None:
        """Add a key as the first of its bucket (``computeIfAbsent``).

        A table that is over-full grows beforehand, also when it has the key.
        """
        if self._is_over_full():
            self._double()
        bucket = self._bucket(key)
        if key in bucket:
            return
        bucket.insert(0, key)
        self._count += 1

    def remove(self, key: Key) -> None:
        """Remove a key that is there; the table does not shrink."""
        self._bucket(key).remove(key)
        self._count -= 1

    def in_order(self) -> list[Key]:
        """Return the keys in the order in which Java iterates them."""
        buckets = self._buckets
        return [key for place in sorted(buckets) for key in buckets[place]]

    def _bucket(self, key: Key) -> list[Key]:
        return self._buckets.setdefault(self._hash(key) & (self._capacity - 1), [])

    def _is_over_full(self) -> bool:
        return self._count > int(self._capacity * LOAD_FACTOR)

    def _double(self) -> None:
        keys = self.in_order()
        self._capacity *= 2
        self._buckets = {}
        for key in keys:
            self._bucket(key).append(key)
