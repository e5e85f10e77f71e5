"""The iteration order of Java's hash tables of strings, where clients can observe it.

Kafka answers with the first error that it finds, and writes records in the order of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

FIRST_TABLE_SIZE: Final = 16
LOAD_FACTOR: Final = 0.75


def hash_table_order(texts: Iterable[str]) -> list[str]:
    """Return the distinct `texts` in the iteration order of a ``HashMap`` filled with them."""
    distinct = list(dict.fromkeys(texts))
    size = FIRST_TABLE_SIZE
    while len(distinct) > size * LOAD_FACTOR:
        size *= 2
    # Sorting is stable: texts of the same bucket keep the order of insertion.
    return sorted(distinct, key=lambda text: _spread_hash(text) & (size - 1))


def _spread_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for index in range(0, len(units), 2):
        found = (31 * found + int.from_bytes(units[index : index + 2], "big")) & 0xFFFFFFFF
    return found ^ (found >> 16)
