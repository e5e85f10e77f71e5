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

import itertools
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from benchmarks.controller_client import ControllerClient
from benchmarks.quorum_processes import Program, QuorumProcesses, kafka, kvorum
from benchmarks.report import Row, outage_rows
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

VERSION = 7
ANSWER_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class TopicShape:
    partitions: int = 1
    replication_factor: int = 1


class TopicRefusedError(Exception):
    """A topic was not created."""


class TopicWriter:
    """A client that sends CreateTopics requests to the active controller, one after the other."""

    def __init__(self, address: str, label: str) -> None:
        self._client = RawClient(address)
        self._client.socket.settimeout(ANSWER_SECONDS_MAX)
        self._names = (f"{label}-{number}" for number in itertools.count())

    def close(self) -> None:
        self._client.socket.close()

    def create(self, count: int, *, per_request: int, shape: TopicShape) -> float:
        """Create `count` topics; return the seconds from the first request to the last response."""
        frames = list(self._frames(count, per_request, shape))
        answers: list[bytes | None] = []
        before = time.perf_counter()
        for frame in frames:
            self._client.send_frame(frame)
            answers.append(self._client.read_frame())
        passed = time.perf_counter() - before
        made = sum(map(_topics_made, answers))
        if made != count:
            raise TopicRefusedError(f"only {made} of {count} topics were created")
        return passed

    def _frames(self, count: int, per_request: int, shape: TopicShape) -> Iterator[bytes]:
        for start in range(0, count, per_request):
            topics = [
                CreateTopicsRequest.CreatableTopic(
                    next(self._names),
                    num_partitions=shape.partitions,
                    replication_factor=shape.replication_factor,
                )
                for _ in range(min(per_request, count - start))
            ]
            request = CreateTopicsRequest(topics=topics, timeout_ms=60_000)
            yield encode_request_frame(
                request, version=VERSION, correlation_id=start, client_id="topics"
            )


def _topics_made(answer: bytes | None) -> int:
    if answer is None:
        raise TopicRefusedError("the controller closed the connection")
    _, response = decode_response_frame(
        answer, response_class=CreateTopicsResponse, version=VERSION
    )
    refused = [topic for topic in response.topics if topic.error_code != ErrorCode.NONE]
    if refused:
        raise TopicRefusedError(f"{refused[0].error_code} {refused[0].error_message}")
    return len(response.topics)


FIRST_BROKER_ID = 100
BEAT_SECONDS = 1.0
SHAPE = TopicShape(partitions=10, replication_factor=3)
TOPICS_PER_REQUEST = 50
SNAPSHOT_SECONDS_MAX = 300.0
QUIET_SHARE_MAX = 0.25
QUIET_LOOK_SECONDS = 0.5
SMALL_SNAPSHOT_INTERVAL_BYTES = 4096
MIB = 1 << 20


class PlayedBrokers:
    """A number of simulated brokers of one quorum; within the context a thread keeps them unfenced.

    While the quorum is down they wait; afterwards they continue with the same epochs.

    The brokers only register and send heartbeats, so that partitions can be placed.
    """

    def __init__(self, quorum: QuorumProcesses, *, count: int) -> None:
        self._quorum = quorum
        self._clients = [
            ControllerClient("broker", broker_id=FIRST_BROKER_ID + number)
            for number in range(count)
        ]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Self:
        for client in self._clients:
            client.play_broker(self._quorum.running.values())
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        for client in self._clients:
            client.close()

    def _keep(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            for client in self._clients:
                client.beat_once(self._quorum.running.values())


def live_heap_bytes(process_id: int) -> int:
    """Run a garbage collection in the process, and return the bytes of all objects left."""
    done = subprocess.run(
        ["jcmd", str(process_id), "GC.class_histogram"], check=True, capture_output=True, text=True
    )
    total = next(line for line in done.stdout.splitlines() if line.startswith("Total"))
    return int(total.split()[2])


@dataclass(frozen=True, slots=True)
class Restart:
    """The duration of one start, and the memory of the node once it is idle.

    `live_bytes` is the heap in use after a collection; for kvorum, the resident memory.
    """

    seconds: float
    resident_bytes: int
    live_bytes: int


class FilledQuorum:
    """A running quorum with simulated brokers, which can be filled with partitions."""

    def __init__(self, program: Program, resources: ExitStack, *, count: int, brokers: int) -> None:
        self.program = program
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        self.quorum = resources.enter_context(QuorumProcesses(program, folder, count=count))
        self._client = ControllerClient("growth")
        resources.callback(self._client.close)
        self.settle()
        resources.enter_context(PlayedBrokers(self.quorum, count=brokers))

    def settle(self) -> int:
        """Wait until all nodes follow the leader and are idle; return the leader's id."""
        leader_id = self._client.settled_leader(self.quorum.running)
        self._wait_until_quiet()
        return leader_id

    def fill(self, partitions: int) -> float:
        """Create `partitions` partitions and return the seconds that it took."""
        topics = partitions // SHAPE.partitions
        return self.make_topics(topics, per_request=TOPICS_PER_REQUEST, shape=SHAPE)

    def make_topics(self, count: int, *, per_request: int, shape: TopicShape) -> float:
        """Create `count` topics on an idle quorum and return the seconds that it took."""
        leader_id = self.settle()
        writer = TopicWriter(self.quorum.running[leader_id], f"orders.{time.time_ns()}")
        try:
            return writer.create(count, per_request=per_request, shape=shape)
        finally:
            writer.close()

    def restart(self) -> Restart:
        """Stop and start the only node; return its duration and the node's memory."""
        self.quorum.stop(1)
        before = time.perf_counter()
        self.quorum.start(1)
        after = self._client.create_topic(self.quorum.running.values())
        self.settle()
        live_bytes = resident_bytes = int(self.quorum.resident_mib(1) * MIB)
        if self.program.name != "kvorum":
            live_bytes = live_heap_bytes(self.quorum.process_id(1))
        return Restart(after - before, resident_bytes, live_bytes)

    def take_snapshot(self) -> None:
        """Make the only node write a snapshot of the whole log."""
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
    return Row(f"{label}: {case.name}", quorums[-1].program.name, ours, theirs, "/s", is_rate=True)


def _rate(case: Case, quorum: FilledQuorum) -> float:
    count = case.turn_topics[quorum.program.name.split()[0]]
    return count / quorum.make_topics(count, per_request=case.per_request, shape=TopicShape())


@dataclass(slots=True)
class Found:
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
