"""A quorum of three with many partitions, ours beside real Kafka: writes, and its leader killed.

Both quorums run at default settings; the partitions are created as for the restarts. The time of an
outage is that from the kill -9 of the leader until a client has created a topic. The programs take
turns.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from benchmarks import controller_writes
from benchmarks.filled_quorum import FilledQuorum
from benchmarks.quorum_processes import Program
from benchmarks.report import Row


def rows(programs: Sequence[Program], *, partitions: int, brokers: int, kills: int) -> list[Row]:
    """Fill a quorum of each program, create topics on it, and kill its leader `kills` times."""
    label = f"{partitions:,} partitions"
    with ExitStack() as resources:
        quorums = [FilledQuorum(each, resources, count=3, brokers=brokers) for each in programs]
        for quorum in quorums:
            quorum.fill(partitions)
        return [
            *controller_writes.rows(quorums, label=label),
            *_kill_rows(quorums, label=label, kills=kills),
        ]


def _kill_rows(quorums: Sequence[FilledQuorum], *, label: str, kills: int) -> list[Row]:
    outages_ms: list[list[float]] = [[] for _ in quorums]
    for _ in range(kills):
        for quorum, found in zip(quorums, outages_ms, strict=True):
            found.append(quorum.kill_leader() * 1000)
            name = quorum.program.name
            print(f"{name}, {label}: leader killed: {found[-1]:.0f} ms", file=sys.stderr)
    peer = quorums[-1].program.name
    ours, theirs = outages_ms[0], outages_ms[-1]
    return [
        Row(f"{label}: leader killed{what}", peer, of(ours), of(theirs), "ms")
        for what, of in ((f", of {kills}", statistics.median), (", worst", max))
    ]
