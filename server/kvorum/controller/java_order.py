"""The iteration order of Java's hash tables of strings, where clients can observe it.

Kafka answers with the first error that it finds, and writes records in the order of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kvorum.metadata.java_hash import spread_hash

FIRST_TABLE_SIZE: Final = 16
LOAD_FACTOR: Final = 0.75


def hash_table_order(texts: Iterable[str]) -> list[str]:
    """Return the distinct `texts` in the iteration order of a ``HashMap`` filled with them."""
    distinct = list(dict.fromkeys(texts))
    size = FIRST_TABLE_SIZE
    while len(distinct) > size * LOAD_FACTOR:
        size *= 2
    # Sorting is stable: texts of the same bucket keep the order of insertion.
    return sorted(distinct, key=lambda text: spread_hash(text) & (size - 1))
