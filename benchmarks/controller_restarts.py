"""Restarts and memory of a single controller with many partitions, ours beside real Kafka.

Requests create the partitions, ten per topic, each on three of the simulated brokers. The time of a
restart lasts from the start of the process until the controller acknowledges a new topic: first
from the log alone, then from a snapshot. The memory is that after a restart, less that of a node
without partitions: for kvorum the resident memory, for Kafka the heap after a collection. The
programs take turns.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.filled_quorum import MIB, FilledQuorum, Restart
from benchmarks.quorum_processes import Program
from benchmarks.report import Row


@dataclass(slots=True)
class Found:
    """The measurements of one program."""

    fill_seconds: float = 0.0
    empty: list[Restart] = field(default_factory=list[Restart])
    from_log: list[Restart] = field(default_factory=list[Restart])
    from_snapshot: list[Restart] = field(default_factory=list[Restart])


def rows(programs: Sequence[Program], *, partitions: int, brokers: int, restarts: int) -> list[Row]:
    """Fill a controller of each program, restart each one, and return the medians."""
    found = [Found() for _ in programs]
    with ExitStack() as resources:
        nodes = [FilledQuorum(each, resources, count=1, brokers=brokers) for each in programs]
        _measure(nodes, found, partitions=partitions, restarts=restarts)
    ours, theirs = found[0], found[-1]
    label, peer = f"{partitions:,} partitions", programs[-1].name
    made, beside = (partitions / one.fill_seconds for one in (ours, theirs))
    report = [Row(f"{label}: made, 500 a request, alone", peer, made, beside, "/s", is_rate=True)]
    for what, mine, other in (
        ("out of the log", ours.from_log, theirs.from_log),
        ("out of a snapshot", ours.from_snapshot, theirs.from_snapshot),
    ):
        seconds = _seconds(mine), _seconds(other)
        memory = (
            _bytes_each(mine, ours.empty, partitions),
            _bytes_each(other, theirs.empty, partitions),
        )
        resident = _resident_mib(mine), _resident_mib(other)
        report += [
            Row(f"{label}: restart {what}", peer, *seconds, "s"),
            Row(f"{label}: memory of each, {what}", peer, *memory, "B"),
            Row(f"{label}: resident, {what}", peer, *resident, "MiB"),
        ]
    return report


def _measure(
    nodes: list[FilledQuorum], found: list[Found], *, partitions: int, restarts: int
) -> None:
    pairs = list(zip(nodes, found, strict=True))
    for _ in range(restarts):
        for node, one in pairs:
            one.empty.append(_reported(node, "empty", node.restart()))
    for node, one in pairs:
        one.fill_seconds = node.fill(partitions)
        print(f"{node.program.name}: filled in {one.fill_seconds:.1f} s", file=sys.stderr)
    for _ in range(restarts):
        for node, one in pairs:
            one.from_log.append(_reported(node, "from the log", node.restart()))
    for node, _ in pairs:
        node.take_snapshot()
    for _ in range(restarts):
        for node, one in pairs:
            one.from_snapshot.append(_reported(node, "from a snapshot", node.restart()))


def _reported(node: FilledQuorum, what: str, restart: Restart) -> Restart:
    print(
        f"{node.program.name}, {what}: {restart.seconds:.2f} s, "
        f"{restart.resident_bytes // MIB} MiB resident, {restart.live_bytes // MIB} MiB live",
        file=sys.stderr,
    )
    return restart


def _seconds(restarts: list[Restart]) -> float:
    return statistics.median(restart.seconds for restart in restarts)


def _bytes_each(full: list[Restart], empty: list[Restart], partitions: int) -> float:
    """Return the memory per partition, above that of a node without partitions."""
    with_them, without = (
        statistics.median(restart.live_bytes for restart in restarts) for restarts in (full, empty)
    )
    return (with_them - without) / partitions


def _resident_mib(restarts: list[Restart]) -> float:
    return statistics.median(restart.resident_bytes for restart in restarts) / MIB
