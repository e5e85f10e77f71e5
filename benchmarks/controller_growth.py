"""What partitions cost a controller: restarts, failover, memory; ours beside real Kafka.

The partitions are made by real requests, ten a topic, each on three brokers that are played. A lone
controller is stopped and started, the clock running until it acknowledges a new topic: once with
everything in the log, once out of a snapshot. Then the leader of a quorum of three is killed, the
clock running until a client has a new topic. The programs take turns at every start and kill.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.controller_client import ControllerClient
from benchmarks.live_heap import live_heap_bytes
from benchmarks.played_brokers import PlayedBrokers
from benchmarks.quorum_processes import Program, QuorumProcesses
from benchmarks.report import Row
from benchmarks.topic_writer import TopicShape, TopicWriter

SHAPE = TopicShape(partitions=10, replication_factor=3)
TOPICS_PER_REQUEST = 50
SNAPSHOT_SECONDS_MAX = 300.0
QUIET_SHARE_MAX = 0.25
QUIET_LOOK_SECONDS = 0.5
SMALL_SNAPSHOT_INTERVAL_BYTES = 4096
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Restart:
    """What one start came to, and what the node held once it had become quiet."""

    seconds: float
    resident_bytes: int
    live_bytes: int


@dataclass(slots=True)
class Found:
    """All that was measured of one program with so many partitions."""

    fill_seconds: float = 0.0
    empty: list[Restart] = field(default_factory=list[Restart])
    from_log: list[Restart] = field(default_factory=list[Restart])
    from_snapshot: list[Restart] = field(default_factory=list[Restart])
    outages_seconds: list[float] = field(default_factory=list[float])


class Loaded:
    """A running quorum whose brokers are played, and which can be filled with partitions."""

    def __init__(self, program: Program, resources: ExitStack, *, count: int) -> None:
        self.program = program
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        self.quorum = resources.enter_context(QuorumProcesses(program, folder, count=count))
        self._client = ControllerClient("growth")
        resources.callback(self._client.close)
        self.settle()
        resources.enter_context(PlayedBrokers(self.quorum, count=SHAPE.replication_factor))

    def settle(self) -> int:
        """Wait until all nodes follow the leader and have nothing left to do; return its id."""
        leader_id = self._client.settled_leader(self.quorum.running)
        self._wait_until_quiet()
        return leader_id

    def fill(self, partitions: int) -> float:
        """Make so many partitions; return the seconds it took."""
        leader_id = self.settle()
        writer = TopicWriter(self.quorum.running[leader_id], f"filled-{time.time_ns()}")
        try:
            seconds = writer.create(
                partitions // SHAPE.partitions, per_request=TOPICS_PER_REQUEST, shape=SHAPE
            )
        finally:
            writer.close()
        self.settle()
        return seconds

    def restart(self) -> Restart:
        """Stop the only node and start it; return what it took to be served again."""
        self.quorum.stop(1)
        before = time.perf_counter()
        self.quorum.start(1)
        after = self._client.create_topic(self.quorum.running.values())
        self.settle()
        resident_bytes = int(self.quorum.resident_mib(1) * MIB)
        return Restart(after - before, resident_bytes, self._live_bytes(resident_bytes))

    def take_snapshot(self) -> None:
        """Have the only node write a snapshot of everything."""
        self.quorum.stop(1)
        self.quorum.configure(
            metadata_log_max_record_bytes_between_snapshots=str(SMALL_SNAPSHOT_INTERVAL_BYTES)
        )
        self.quorum.start(1)
        deadline = time.perf_counter() + SNAPSHOT_SECONDS_MAX
        while not self._has_snapshot():
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{self.program.name} writes no snapshot")
            self._client.create_topic(self.quorum.running.values())
            time.sleep(0.1)
        self.settle()
        self.quorum.configure(metadata_log_max_record_bytes_between_snapshots=str(20 * MIB))

    def kill_leader(self) -> float:
        """Kill the leader; return the seconds until a new topic was acknowledged."""
        leader_id = self.settle()
        self._client.create_topic(self.quorum.running.values())
        before = time.perf_counter()
        self.quorum.kill(leader_id)
        after = self._client.create_topic(self.quorum.running.values())
        self.quorum.assert_running()
        self.quorum.start(leader_id)
        return after - before

    def _live_bytes(self, resident_bytes: int) -> int:
        """Return the heap in use after a collection; for our program all that is resident."""
        if self.program.name == "kvorum":
            return resident_bytes
        return live_heap_bytes(self.quorum.process_id(1))

    def _has_snapshot(self) -> bool:
        checkpoints = self.quorum.metadata_log(1).glob("*.checkpoint")
        return any(not path.name.startswith("0" * 20) for path in checkpoints)

    def _wait_until_quiet(self) -> None:
        deadline = time.perf_counter() + SNAPSHOT_SECONDS_MAX
        while time.perf_counter() < deadline:
            before = self._used_seconds()
            time.sleep(QUIET_LOOK_SECONDS)
            if self._used_seconds() - before < QUIET_SHARE_MAX * QUIET_LOOK_SECONDS:
                return
        raise TimeoutError(f"{self.program.name} does not come to rest")

    def _used_seconds(self) -> float:
        return sum(map(self.quorum.processor_seconds, self.quorum.running))


def rows(programs: Sequence[Program], *, partitions: int, restarts: int, kills: int) -> list[Row]:
    """Measure lone controllers, then quorums, with so many partitions; medians."""
    found = [Found() for _ in programs]
    with ExitStack() as resources:
        _restart_all(
            [Loaded(each, resources, count=1) for each in programs],
            found,
            partitions=partitions,
            restarts=restarts,
        )
    if kills:
        with ExitStack() as resources:
            _kill_all(
                [Loaded(each, resources, count=3) for each in programs],
                found,
                partitions=partitions,
                kills=kills,
            )
    return _rows(found[0], found[-1], partitions=partitions, peer=programs[-1].name)


def _restart_all(
    nodes: list[Loaded], found: list[Found], *, partitions: int, restarts: int
) -> None:
    pairs = list(zip(nodes, found, strict=True))
    for _ in range(restarts):
        for node, one in pairs:
            one.empty.append(_told(node, "empty", node.restart()))
    for node, one in pairs:
        one.fill_seconds = node.fill(partitions)
        print(f"{node.program.name}: filled in {one.fill_seconds:.1f} s", file=sys.stderr)
    for _ in range(restarts):
        for node, one in pairs:
            one.from_log.append(_told(node, "from the log", node.restart()))
    for node, _ in pairs:
        node.take_snapshot()
    for _ in range(restarts):
        for node, one in pairs:
            one.from_snapshot.append(_told(node, "from a snapshot", node.restart()))


def _told(node: Loaded, what: str, restart: Restart) -> Restart:
    print(
        f"{node.program.name}, {what}: {restart.seconds:.2f} s, "
        f"{restart.resident_bytes // MIB} MiB resident, {restart.live_bytes // MIB} MiB live",
        file=sys.stderr,
    )
    return restart


def _kill_all(nodes: list[Loaded], found: list[Found], *, partitions: int, kills: int) -> None:
    pairs = list(zip(nodes, found, strict=True))
    for node, _ in pairs:
        node.fill(partitions)
    for _ in range(kills):
        for node, one in pairs:
            one.outages_seconds.append(node.kill_leader())
            print(
                f"{node.program.name}, leader killed: {one.outages_seconds[-1]:.2f} s",
                file=sys.stderr,
            )


def _rows(ours: Found, theirs: Found, *, partitions: int, peer: str) -> list[Row]:
    with_so_many = f"{partitions:,} partitions"
    made = [
        Row(
            f"{with_so_many}: made a second, alone",
            peer,
            partitions / ours.fill_seconds,
            partitions / theirs.fill_seconds,
            "/s",
            is_rate=True,
        )
    ]
    for what, mine, other in (
        ("restart out of the log", ours.from_log, theirs.from_log),
        ("restart out of a snapshot", ours.from_snapshot, theirs.from_snapshot),
    ):
        made.append(Row(f"{with_so_many}: {what}", peer, _seconds(mine), _seconds(other), "s"))
        made.append(
            Row(
                f"{with_so_many}: memory each, {what}",
                peer,
                _bytes_each(mine, ours.empty, partitions),
                _bytes_each(other, theirs.empty, partitions),
                "B",
            )
        )
    if ours.outages_seconds:
        for label, of in (("", statistics.median), (", worst", max)):
            made.append(
                Row(
                    f"{with_so_many}: leader killed{label}",
                    peer,
                    1000 * of(ours.outages_seconds),
                    1000 * of(theirs.outages_seconds),
                    "ms",
                )
            )
    return made


def _seconds(restarts: list[Restart]) -> float:
    return statistics.median(restart.seconds for restart in restarts)


def _bytes_each(full: list[Restart], empty: list[Restart], partitions: int) -> float:
    """Return what a partition adds to the memory that a node without partitions takes."""
    with_them, without = (
        statistics.median(restart.live_bytes for restart in restarts) for restarts in (full, empty)
    )
    return (with_them - without) / partitions
