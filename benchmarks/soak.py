"""A quorum of three at default settings that nobody disturbs, and then one under full load.

No election may take place in either: one that does shows what every node said about it, and ends
the run with an error.
"""

from __future__ import annotations

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
    """The epoch changed, and nobody had asked for that."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Who leads, and since which epoch."""

    leader_id: int
    epoch: int


class Soak:
    """A running quorum, and a client that looks at it now and then."""

    def __init__(self, resources: ExitStack) -> None:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        self._quorum = resources.enter_context(QuorumProcesses(kvorum(), folder))
        self._client = ControllerClient("soak")
        resources.callback(self._client.close)
        self._client.settled_leader(self._quorum.running)
        time.sleep(SETTLE_SECONDS)
        self._standing = self._look()

    def watch(self, minutes: float, what: str) -> None:
        """Look at the quorum for so long; raises SpuriousElectionError."""
        started, used_before = time.monotonic(), self._used_seconds()
        longest_stall = 0.0
        while time.monotonic() - started < 60 * minutes:
            longest_stall = max(longest_stall, _sleep_and_measure_stalls(LOOK_SECONDS))
            self._quorum.assert_running()
            standing = self._look()
            if standing != self._standing:
                after = (time.monotonic() - started) / 60
                stalls = f"{what}, after {after:.1f} minutes; longest stall {longest_stall:.2f} s"
                raise SpuriousElectionError(f"{stalls}: {self._story(standing)}")
        seconds = time.monotonic() - started
        shares = [
            f"{100 * (used - before) / seconds:.2f} %"
            for used, before in zip(self._used_seconds(), used_before, strict=True)
        ]
        resident = [f"{self._quorum.resident_mib(each):.0f} MiB" for each in self._quorum.running]
        print(f"{what}: {seconds / 60:.1f} minutes without an election, {self._standing}")
        print(f"  processor: {', '.join(shares)} of a core; resident: {', '.join(resident)}")
        print(f"  the machine kept this watcher itself waiting for {longest_stall:.2f} s at most")
        sys.stdout.flush()

    def watch_under_load(self, minutes: float) -> None:
        """Look at the quorum while clients create and delete topics as fast as they can."""
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
        """Ask every node, since only the leader answers; the newest epoch counts."""
        found: list[Standing] = []
        for address in self._quorum.running.values():
            described = self._client.describe(address)
            if described is not None and described.leader_id >= 0:
                found.append(Standing(described.leader_id, described.leader_epoch))
        return max(found, key=lambda one: one.epoch, default=Standing(-1, -1))

    def _used_seconds(self) -> list[float]:
        return [self._quorum.processor_seconds(each) for each in self._quorum.running]

    def _story(self, now: Standing) -> str:
        lines = [f"{self._standing} became {now}"]
        for node_id in self._quorum.running:
            said = self._quorum.output_of(node_id).read_text()[-OUTPUT_SHOWN_BYTES:]
            lines.append(f"node {node_id}:\n{said}")
        return "\n".join(lines)


def _sleep_and_measure_stalls(seconds: float) -> float:
    """Sleep in short steps; return by how much the longest of them was too long.

    Where that comes near the fetch timeout, the machine was too busy for any node to live on it.
    """
    until = time.monotonic() + seconds
    longest = 0.0
    while (before := time.monotonic()) < until:
        time.sleep(STEP_SECONDS)
        longest = max(longest, time.monotonic() - before - STEP_SECONDS)
    return longest


def run(*, idle_minutes: float, load_minutes: float) -> None:
    """Watch the quorum first idle, then under load."""
    with ExitStack() as resources:
        soak = Soak(resources)
        if idle_minutes > 0:
            soak.watch(idle_minutes, "idle")
        if load_minutes > 0:
            soak.watch_under_load(load_minutes)
