"""The iteration order of Java's hash tables, where clients can observe it.

Kafka answers with the first error that it finds, and writes records in the order of its tables.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from kvorum.metadata.java_hash import FIRST_CAPACITY, LOAD_FACTOR, spread_hash

Key = TypeVar("Key")


def hash_table_order(texts: Iterable[str]) -> list[str]:
    """Return the distinct `texts` in the iteration order of a ``HashMap`` filled with them."""
    return _by_bucket(texts, spread_hash)


def integer_table_order(numbers: Iterable[int]) -> list[int]:
    """Return the distinct `numbers` of 32 bits in the order of a ``HashMap`` filled with them."""
    return _by_bucket(numbers, _spread_integer)


def _by_bucket(keys: Iterable[Key], spread: Callable[[Key], int]) -> list[Key]:
    distinct = list(dict.fromkeys(keys))
    size = FIRST_CAPACITY
    while len(distinct) > size * LOAD_FACTOR:
        size *= 2
    # Sorting is stable: keys of the same bucket keep the order of insertion.
    return sorted(distinct, key=lambda key: spread(key) & (size - 1))


def _spread_integer(number: int) -> int:
    unsigned = number & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)
