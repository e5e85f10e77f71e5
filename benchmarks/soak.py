"""A soak test of a quorum of three at default settings: first idle, then under full load.

No election may take place. If one does, the run ends with an error that contains the output of
every node.
"""

import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.controller_client import ControllerClient
from benchmarks.quorum_processes import QuorumProcesses, kvorum

LOOK_SECONDS = 5.0
STEP_SECONDS = 0.1
SETTLE_SECONDS = 5.0
WRITERS = 4
TOPICS_PER_DELETION = 50
OUTPUT_SHOWN_BYTES = 4000


class SpuriousElectionError(Exception):
    """The epoch or the leader changed although nothing was done to the quorum."""


@dataclass(frozen=True, slots=True)
class Standing:
    leader_id: int
    epoch: int


class Soak:
    def __init__(self, resources: ExitStack) -> None:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        self._quorum = resources.enter_context(QuorumProcesses(kvorum(), folder))
        self._client = ControllerClient("soak")
        resources.callback(self._client.close)
        self._client.settled_leader(self._quorum.running)
        time.sleep(SETTLE_SECONDS)
        self._standing = self._look()

    def watch(self, minutes: float, what: str) -> None:
        """Observe the quorum for `minutes`; raise SpuriousElectionError after an election."""
        started, used_before = time.monotonic(), self._used_seconds()
        longest_stall = 0.0
        while time.monotonic() - started < 60 * minutes:
            longest_stall = max(longest_stall, _sleep_and_measure_stalls(LOOK_SECONDS))
            self._quorum.assert_running()
            standing = self._look()
            if standing != self._standing:
                after = (time.monotonic() - started) / 60
                stalls = f"{what}, after {after:.1f} minutes; longest stall {longest_stall:.2f} s"
                raise SpuriousElectionError(f"{stalls}: {self._report(standing)}")
        seconds = time.monotonic() - started
        shares = [
            f"{100 * (used - before) / seconds:.2f} %"
            for used, before in zip(self._used_seconds(), used_before, strict=True)
        ]
        resident = [f"{self._quorum.resident_mib(each):.0f} MiB" for each in self._quorum.running]
        print(f"{what}: {seconds / 60:.1f} minutes without an election, {self._standing}")
        print(f"  processor: {', '.join(shares)} of a core; resident: {', '.join(resident)}")
        print(f"  longest stall of this process itself: {longest_stall:.2f} s")
        sys.stdout.flush()

    def watch_under_load(self, minutes: float) -> None:
        """Observe the quorum while clients create and delete topics as fast as they can."""
        self._client.play_broker(self._quorum.running.values())
        over = threading.Event()
        counts = [0] * WRITERS
        threads = [
            threading.Thread(target=self._write, args=[number, counts, over], daemon=True)
            for number in range(WRITERS)
        ]
        threads.append(threading.Thread(target=self._beat, args=[over], daemon=True))
        for thread in threads:
            thread.start()
        try:
            self.watch(minutes, f"under load of {WRITERS} clients")
        finally:
            over.set()
            for thread in threads:
                thread.join()
        print(f"  {sum(counts)} topics created, {sum(counts) / minutes / 60:.0f} a second")

    def _write(self, number: int, counts: list[int], over: threading.Event) -> None:
        client = ControllerClient(f"writer-{number}")
        addresses = self._leader_first()
        while not over.is_set():
            names = [client.next_name() for _ in range(TOPICS_PER_DELETION)]
            for name in names:
                client.create_topic(addresses, name)
                counts[number] += 1
                if over.is_set():
                    break
            client.delete_topics(addresses[:1], names)
        client.close()

    def _beat(self, over: threading.Event) -> None:
        client = self._client.for_same_broker()
        while not over.wait(1.0):
            client.play_broker(self._leader_first())
        client.close()

    def _leader_first(self) -> list[str]:
        running = self._quorum.running
        leader_id = self._standing.leader_id
        return [running[leader_id], *(running[each] for each in running if each != leader_id)]

    def _look(self) -> Standing:
        """Ask every node, since only the leader responds; return the newest epoch."""
        found: list[Standing] = []
        for address in self._quorum.running.values():
            described = self._client.describe(address)
            if described is not None and described.leader_id >= 0:
                found.append(Standing(described.leader_id, described.leader_epoch))
        return max(found, key=lambda one: one.epoch, default=Standing(-1, -1))

    def _used_seconds(self) -> list[float]:
        return [self._quorum.processor_seconds(each) for each in self._quorum.running]

    def _report(self, now: Standing) -> str:
        lines = [f"{self._standing} became {now}"]
        for node_id in self._quorum.running:
            output = self._quorum.output_of(node_id).read_text()[-OUTPUT_SHOWN_BYTES:]
            lines.append(f"node {node_id}:\n{output}")
        return "\n".join(lines)


def _sleep_and_measure_stalls(seconds: float) -> float:
    """Sleep in short steps; return the longest delay of a step.

    A delay near the fetch timeout means that the machine was too busy for any node.
    """
    until = time.monotonic() + seconds
    longest = 0.0
    while (before := time.monotonic()) < until:
        time.sleep(STEP_SECONDS)
        longest = max(longest, time.monotonic() - before - STEP_SECONDS)
    return longest


def run(*, idle_minutes: float, load_minutes: float) -> None:
    with ExitStack() as resources:
        soak = Soak(resources)
        if idle_minutes > 0:
            soak.watch(idle_minutes, "idle")
        if load_minutes > 0:
            soak.watch_under_load(load_minutes)
