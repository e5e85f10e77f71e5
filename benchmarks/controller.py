"""A controller at work, ours beside real Kafka: writes, then what partitions cost at each size."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import controller_growth, controller_writes
from benchmarks.quorum_processes import kafka, kvorum
from benchmarks.report import Row

RESTARTS = 3
KILLS = 5


def rows(sizes: Sequence[int], *, with_peer: bool, heap_gib: int) -> list[Row]:
    """Measure writes, unless our program is to be alone, then each of `sizes` partitions."""
    found = controller_writes.rows() if with_peer else []
    programs = [kvorum(), kafka(heap_gib=heap_gib)] if with_peer else [kvorum()]
    for partitions in sizes:
        found += controller_growth.rows(
            programs, partitions=partitions, restarts=RESTARTS, kills=KILLS
        )
    return found
