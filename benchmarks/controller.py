"""The performance of controllers by number of partitions, ours beside real Kafka.

Programs take turns, at default settings. Requests create the partitions, ten per topic, each on
three of the simulated brokers.

- Writes to a quorum of three: topics of one partition a second, on simulated brokers, so the figure
  contains no work of a broker. One client waits for each response before it sends the next request;
  the first turn of each program is not counted.
- The outage of that quorum: from the kill -9 of the leader until a client has created a topic.
- Restarts of a single controller: from the start of the process until the controller acknowledges
  a new topic, first from the log alone, then from a snapshot.
- Memory: that after a restart, less that of a node without partitions: for kvorum the resident
  memory, for Kafka the heap after a collection.
"""

import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.filled_quorum import MIB, FilledQuorum, Restart
from benchmarks.quorum_processes import Program, kafka, kvorum
from benchmarks.report import Row, outage_rows
from benchmarks.topic_writer import TopicShape

RESTARTS = 3
KILLS = 5
ROUNDS = 5


def rows(sizes: Sequence[int], *, brokers: int, with_peer: bool, heap_gib: int) -> list[Row]:
    """Measure at each of `sizes` partitions; without the peer, our program replaces it."""
    programs = [kvorum(), kafka(heap_gib=heap_gib)] if with_peer else [kvorum()]
    found: list[Row] = []
    for partitions in sizes:
        found += quorum_rows(programs, partitions=partitions, brokers=brokers)
        if partitions:
            found += restart_rows(programs, partitions=partitions, brokers=brokers)
    return found


def quorum_rows(programs: Sequence[Program], *, partitions: int, brokers: int) -> list[Row]:
    """Fill a quorum of each program, create topics on it, and kill its leader some times."""
    label = f"{partitions:,} partitions"
    with ExitStack() as resources:
        quorums = [FilledQuorum(each, resources, count=3, brokers=brokers) for each in programs]
        for quorum in quorums:
            quorum.fill(partitions)
        return [*write_rows(quorums, label=label), *_kill_rows(quorums, label=label)]


def _kill_rows(quorums: Sequence[FilledQuorum], *, label: str) -> list[Row]:
    outages_ms: list[list[float]] = [[] for _ in quorums]
    for _ in range(KILLS):
        for quorum, found in zip(quorums, outages_ms, strict=True):
            found.append(quorum.kill_leader() * 1000)
            name = quorum.program.name
            print(f"{name}, {label}: leader killed: {found[-1]:.0f} ms", file=sys.stderr)
    peer = quorums[-1].program.name
    return outage_rows(f"{label}: leader killed", peer, outages_ms[0], outages_ms[-1])


@dataclass(frozen=True, slots=True)
class Case:
    """A size of requests, and the topics that each program creates in a turn of some seconds."""

    name: str
    per_request: int
    turn_topics: Mapping[str, int]


CASES = (
    Case("topics, one per request", 1, {"kvorum": 300, "Kafka": 60}),
    Case("topics, 100 per request", 100, {"kvorum": 3000, "Kafka": 3000}),
)


def write_rows(quorums: Sequence[FilledQuorum], *, label: str) -> list[Row]:
    """Measure the quorums in turns, and return the medians."""
    return [_row(case, quorums, label) for case in CASES]


def _row(case: Case, quorums: Sequence[FilledQuorum], label: str) -> Row:
    rates: list[list[float]] = [[] for _ in quorums]
    for number in range(ROUNDS + 1):
        for quorum, found in zip(quorums, rates, strict=True):
            rate = _rate(case, quorum)
            print(f"{quorum.program.name}, {label}: {case.name}: {rate:.0f}/s", file=sys.stderr)
            if number:
                found.append(rate)
    ours, theirs = statistics.median(rates[0]), statistics.median(rates[-1])
    what = f"{label}: {case.name}"
    return Row(what, quorums[-1].program.name, ours, theirs, "/s", is_rate=True)


def _rate(case: Case, quorum: FilledQuorum) -> float:
    """Return the number of topics created per second in one turn."""
    count = case.turn_topics[quorum.program.name.split()[0]]
    seconds = quorum.make_topics(count, per_request=case.per_request, shape=TopicShape())
    return count / seconds


@dataclass(slots=True)
class Found:
    """The measurements of one program."""

    fill_seconds: float = 0.0
    empty: list[Restart] = field(default_factory=list[Restart])
    from_log: list[Restart] = field(default_factory=list[Restart])
    from_snapshot: list[Restart] = field(default_factory=list[Restart])


def restart_rows(programs: Sequence[Program], *, partitions: int, brokers: int) -> list[Row]:
    """Fill a controller of each program, restart each one, and return the medians."""
    found = [Found() for _ in programs]
    with ExitStack() as resources:
        nodes = [FilledQuorum(each, resources, count=1, brokers=brokers) for each in programs]
        _measure(nodes, found, partitions=partitions)
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


def _measure(nodes: list[FilledQuorum], found: list[Found], *, partitions: int) -> None:
    pairs = list(zip(nodes, found, strict=True))
    for _ in range(RESTARTS):
        for node, one in pairs:
            one.empty.append(_reported(node, "empty", node.restart()))
    for node, one in pairs:
        one.fill_seconds = node.fill(partitions)
        print(f"{node.program.name}: filled in {one.fill_seconds:.1f} s", file=sys.stderr)
    for _ in range(RESTARTS):
        for node, one in pairs:
            one.from_log.append(_reported(node, "from the log", node.restart()))
    for node, _ in pairs:
        node.take_snapshot()
    for _ in range(RESTARTS):
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
