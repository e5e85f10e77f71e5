"""The buckets of Java's HashMap, where the history of a table decides its order.

As in Java 17, a bucket is a list or, when it has become long in a large table, a red-black tree.
Left out are removals through an iterator, which keep a tree and the places of the other keys in it:
no table of Kafka's assignors is iterated again after one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

from kvorum.groups.assignors.bucket_tree import BucketTree, Rank
from kvorum.metadata.java_hash import FIRST_CAPACITY, LOAD_FACTOR

Key = TypeVar("Key")

_Bucket: TypeAlias = list[Key] | BucketTree[Key]

_LIST_KEYS_MAX: Final = 8
"""The number of keys above which a bucket in which a key was put is relieved."""
_COMPUTED_LIST_KEYS_MAX: Final = 7
"""The number of keys above which a bucket for which a key was computed is relieved."""
_SPLIT_LIST_KEYS_MAX: Final = 6
"""The number of keys up to which half a tree is a list again."""
_TREES_CAPACITY_MIN: Final = 64
"""The capacity of the smallest table with trees; in a smaller one, a long bucket is split."""
_SIGN: Final = 1 << 31
"""The bit that is turned so that unsigned numbers compare like signed ones."""


def capacity_for(count: int) -> int:
    """Return the capacity of a table that is made for `count` keys: a power of two."""
    return capacity_of(int(count / LOAD_FACTOR) + 1)


def capacity_of(asked: int) -> int:
    """Return the capacity of a table for which the program asks for `asked` buckets."""
    return 1 << max(asked - 1, 0).bit_length()


def set_capacity(count: int) -> int:
    """Return the capacity of a ``HashSet`` that is a copy of a collection of `count` elements."""
    return max(capacity_for(count), FIRST_CAPACITY)


def _without_order(_: object) -> bytes:
    return b""


class HashTable(Generic[Key]):
    """The distinct keys of a ``HashMap`` or ``HashSet`` by their buckets."""

    __slots__ = ("_buckets", "_capacity", "_count", "_count_max", "_hash", "_order")

    def __init__(
        self,
        hash_of: Callable[[Key], int],
        capacity: int,
        keys: Iterable[Key] = (),
        *,
        order_of: Callable[[Key], bytes] = _without_order,
    ) -> None:
        """Put keys into an empty table.

        `hash_of` returns the hash from whose low bits Java takes a bucket, as an unsigned number of
        32 bits. Keys of the same hash in a tree are compared by what `order_of` returns. Without it
        a new one of them is taken for the smallest. Java compares keys that are not ``Comparable``
        by where they are in memory, so that their order is another one in each run.
        """
        self._hash = hash_of
        self._order = order_of
        self._capacity = capacity
        self._count = 0
        self._count_max = int(capacity * LOAD_FACTOR)
        self._buckets: dict[int, _Bucket[Key]] = {}
        for key in keys:
            self.put(key)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: Key) -> bool:
        return key in self._bucket(key)

    def put(self, key: Key) -> None:
        """Add a key as the last of its list (``put``); the table grows when it is full."""
        bucket = self._bucket(key)
        if key in bucket:
            return
        self._count += 1
        if isinstance(bucket, list):
            bucket.append(key)
            if len(bucket) > _LIST_KEYS_MAX:
                self._relieve(key, bucket)
        else:
            bucket.add(key)
        if self._count > self._count_max:
            self._double()

    def compute_if_absent(self, key: Key) -> None:
        """Add a key as the first of its list (``computeIfAbsent``).

        A table that is over-full grows beforehand, also when it has the key.
        """
        if self._count > self._count_max:
            self._double()
        bucket = self._bucket(key)
        if key in bucket:
            return
        self._count += 1
        if isinstance(bucket, list):
            bucket.insert(0, key)
            if len(bucket) > _COMPUTED_LIST_KEYS_MAX:
                self._relieve(key, bucket)
        else:
            bucket.add(key)

    def remove(self, key: Key) -> None:
        """Remove a key that is there (``remove``); the table does not shrink."""
        bucket = self._bucket(key)
        self._count -= 1
        if isinstance(bucket, list):
            bucket.remove(key)
        elif bucket.is_small:
            self._buckets[self._place(key)] = [other for other in bucket if other != key]
        else:
            bucket.remove(key)

    def in_order(self) -> list[Key]:
        """Return the keys in the order in which Java iterates them."""
        buckets = self._buckets
        return [key for place in sorted(buckets) for key in buckets[place]]

    def _place(self, key: Key) -> int:
        return self._hash(key) & (self._capacity - 1)

    def _bucket(self, key: Key) -> _Bucket[Key]:
        return self._buckets.setdefault(self._hash(key) & (self._capacity - 1), [])

    def _rank(self, key: Key) -> Rank:
        return self._hash(key) ^ _SIGN, self._order(key)

    def _relieve(self, key: Key, bucket: list[Key]) -> None:
        """Make a tree of the long bucket of a key, or double a small table instead."""
        if self._capacity < _TREES_CAPACITY_MIN:
            self._double()
        else:
            self._buckets[self._place(key)] = BucketTree(bucket, self._rank)

    def _double(self) -> None:
        before = self._buckets.values()
        self._capacity *= 2
        self._count_max = int(self._capacity * LOAD_FACTOR)
        lists: dict[int, list[Key]] = {}
        for bucket in before:
            for key in bucket:
                lists.setdefault(self._place(key), []).append(key)
        self._buckets = dict(lists)
        for bucket in before:
            if isinstance(bucket, BucketTree):
                self._split(bucket, lists)

    def _split(self, tree: BucketTree[Key], lists: Mapping[int, list[Key]]) -> None:
        """Make a tree of each large half of a tree, or keep it where its keys stay together."""
        for place in {self._place(key) for key in tree}:
            half = lists[place]
            if len(half) > _SPLIT_LIST_KEYS_MAX:
                is_whole = len(half) == len(tree)
                self._buckets[place] = tree if is_whole else BucketTree(half, self._rank)
