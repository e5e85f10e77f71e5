"""The performance of controllers by number of partitions, ours beside real Kafka."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import controller_quorum, controller_restarts
from benchmarks.quorum_processes import kafka, kvorum
from benchmarks.report import Row

RESTARTS = 3
KILLS = 5


def rows(sizes: Sequence[int], *, brokers: int, with_peer: bool, heap_gib: int) -> list[Row]:
    """Measure at each of `sizes` partitions; without the peer, our program replaces it."""
    programs = [kvorum(), kafka(heap_gib=heap_gib)] if with_peer else [kvorum()]
    found: list[Row] = []
    for partitions in sizes:
        found += controller_quorum.rows(
            programs, partitions=partitions, brokers=brokers, kills=KILLS
        )
        if partitions:
            found += controller_restarts.rows(
                programs, partitions=partitions, brokers=brokers, restarts=RESTARTS
            )
    return found
