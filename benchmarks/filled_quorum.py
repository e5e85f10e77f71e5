"""A quorum of one program, filled with partitions on simulated brokers.

The brokers only register and send heartbeats, so that partitions can be placed.
"""

import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.controller_client import ControllerClient
from benchmarks.quorum_processes import Program, QuorumProcesses
from benchmarks.topic_writer import TopicShape, TopicWriter

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
