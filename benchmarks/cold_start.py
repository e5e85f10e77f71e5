"""The time until a quorum serves after its nodes were killed, ours beside real Kafka.

All three controllers are killed at once (kill -9), and all three, or two of them, are started again
one after the other. The clock runs from the start of the second, with which there is a majority, to
the next topic that a client sees acknowledged. The programs take turns, at default settings.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.controller_client import ControllerClient
from benchmarks.quorum_processes import Program, QuorumProcesses, kafka, kvorum
from benchmarks.report import Row, outage_rows

STARTS = 10
MAJORITY = 2


class Contender:
    """A quorum, and the client that waits for it."""

    def __init__(self, program: Program, resources: ExitStack) -> None:
        self.program = program
        self._folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        self.quorum = resources.enter_context(QuorumProcesses(program, self._folder))
        self._client = ControllerClient("cold")
        resources.callback(self._client.close)

    def start_ms(self, *, count: int, round_number: int) -> float:
        """Kill every node of a settled quorum; return how long `count` of them take to serve."""
        leader_id = self._client.settled_leader(self.quorum.running)
        self._client.play_broker(self.quorum.running.values())
        self._client.create_topic(self.quorum.running.values())
        for node_id in list(self.quorum.running):
            self.quorum.kill(node_id)
        first, *others = started = _started(self.quorum.ports, leader_id, count, round_number)
        self.quorum.start(first)
        before = time.perf_counter()
        for node_id in others:
            self.quorum.start(node_id)
        after = self._client.create_topic(self.quorum.running.values())
        self.quorum.assert_running()
        for node_id in self.quorum.ports.keys() - set(started):
            self.quorum.start(node_id)
        return (after - before) * 1000


def _started(ports: dict[int, int], leader_id: int, count: int, round_number: int) -> list[int]:
    """Return the nodes to start, in order; where one is left out, every other time the leader."""
    rest = [node_id for node_id in ports if node_id != leader_id]
    if round_number % 2:
        return [*rest, leader_id][:count]
    return [leader_id, *rest][:count]


def rows() -> list[Row]:
    """Take turns at killing and starting; medians."""
    programs = [kvorum(), kafka()]
    found: dict[tuple[int, int], list[float]] = {}
    with ExitStack() as resources:
        contenders = [Contender(program, resources) for program in programs]
        for number in range(STARTS):
            for index, contender in enumerate(contenders):
                for count in (len(contender.quorum.ports), MAJORITY):
                    passed_ms = contender.start_ms(count=count, round_number=number)
                    found.setdefault((index, count), []).append(passed_ms)
                    what = f"{count} started, the leader {'last' if number % 2 else 'first'}"
                    print(f"{contender.program.name}, {what}: {passed_ms:.0f} ms", file=sys.stderr)
    return _report(programs, found)


def _report(programs: Sequence[Program], found: dict[tuple[int, int], list[float]]) -> list[Row]:
    report: list[Row] = []
    counts = sorted({count for _, count in found}, reverse=True)
    for count in counts:
        ours, theirs = found[0, count], found[len(programs) - 1, count]
        what = f"all killed, {count} of 3 started to next CreateTopics"
        report += outage_rows(what, programs[-1].name, ours, theirs)
    return report
