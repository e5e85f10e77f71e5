"""The order of the topics to which a member subscribes, by Java's sets of their names."""

from collections.abc import Sequence

from kvorum.groups.assignors.hash_table import HashTable, set_capacity
from kvorum.metadata.java_hash import spread_hash
from kvorum.metadata.java_order import in_java_order


def names_in_order(names: Sequence[str]) -> list[str]:
    """Return names in the order of a ``HashSet`` that is a copy of a list of them.

    The list is sorted in records; in a request it is as the member sent it.
    """
    table = HashTable(spread_hash, set_capacity(len(names)), names, order_of=in_java_order)
    return table.in_order()


def union_in_order(names: Sequence[str], matched: Sequence[str]) -> list[str]:
    """Return both the names and those that a regular expression matched (Kafka's UnionSet)."""
    large, small = (names, matched) if len(names) > len(matched) else (matched, names)
    return list(dict.fromkeys((*large, *small)))
