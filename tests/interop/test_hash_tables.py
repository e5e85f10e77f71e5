"""The hash tables of assignors: Java's own HashMap and ours have their keys in the same order."""

from random import Random
from typing import Final

import pytest
from tests.interop.changed_hash_table import ChangedHashTable
from tests.support.kafka.java import Java

STEPS: Final = 200
TABLES: Final = 500
SAMPLE_TABLES: Final = 40


def compare(java: Java, tables: int) -> None:
    lines: list[str] = []
    ours: list[tuple[str, str]] = []
    for seed in range(tables):
        table = ChangedHashTable(Random(seed))
        ours.append((f"table {seed}", table.text()))
        ours += [(f"table {seed}, step {number}", table.step()) for number in range(STEPS)]
        lines += table.lines
    theirs = java.answers("HashTableOracle", asked=lines)
    differences = [
        f"{place}, {line}:\n  ours   {mine}\n  Java's {other}"
        for (place, mine), line, other in zip(ours, lines, theirs, strict=True)
        if mine != other
    ]
    assert not differences, f"{len(differences)} of {len(ours)}\n{differences[0]}"


@pytest.mark.sample
def test_keys_that_share_buckets_have_the_order_of_javas_table(java: Java) -> None:
    compare(java, SAMPLE_TABLES)


@pytest.mark.slow
def test_keys_have_the_order_of_javas_table_over_the_lives_of_many_tables(java: Java) -> None:
    compare(java, TABLES)
