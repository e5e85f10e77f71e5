"""A quorum of three, ours beside real Kafka: idle, its leader killed, or all of its nodes.

Both quorums run all the time, at default settings, and take turns.

- After a kill -9 of the leader, a client asks the two others for a topic until one acknowledges it;
  then the killed node is started again.
- All three controllers are killed at once (kill -9), and all three, or two of them, are started
  again one after the other. The clock runs from the start of the second, with which there is a
  majority, to the next topic that a client sees acknowledged.
"""

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.controller_client import ControllerClient
from benchmarks.quorum_processes import Program, QuorumProcesses, kafka, kvorum
from benchmarks.report import Row, outage_rows

KILLS = 20
STARTS = 10
MAJORITY = 2


class Contender:
    """A running quorum, the client that finds its leader, and its outages in milliseconds."""

    def __init__(self, program: Program, resources: ExitStack) -> None:
        self.program = program
        self.outages_ms: dict[str, list[float]] = {}
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        self.quorum = resources.enter_context(QuorumProcesses(program, folder))
        self._client = ControllerClient("outages")
        resources.callback(self._client.close)

    def settle(self) -> int:
        """Wait until every node is running and close to the leader; return the leader's id."""
        return self._client.settled_leader(self.quorum.running)

    def kill_leader(self, what: str) -> None:
        leader_id = self._ready_leader()
        before = time.perf_counter()
        self.quorum.kill(leader_id)
        self._record(what, before)
        self.quorum.start(leader_id)

    def kill_all(self, what: str, *, count: int, round_number: int) -> None:
        """Kill every node of a settled quorum; record how long `count` of them take to serve."""
        leader_id = self._ready_leader()
        for node_id in list(self.quorum.running):
            self.quorum.kill(node_id)
        first, *others = started = _started(self.quorum.ports, leader_id, count, round_number)
        self.quorum.start(first)
        before = time.perf_counter()
        for node_id in others:
            self.quorum.start(node_id)
        self._record(what, before)
        for node_id in self.quorum.ports.keys() - set(started):
            self.quorum.start(node_id)

    def _ready_leader(self) -> int:
        """Return the leader of a settled quorum, on which a topic can be made at once."""
        leader_id = self.settle()
        self._client.play_broker(self.quorum.running.values())
        self._client.create_topic(self.quorum.running.values())
        return leader_id

    def _record(self, what: str, before: float) -> None:
        after = self._client.create_topic(self.quorum.running.values())
        self.quorum.assert_running()
        outage_ms = (after - before) * 1000
        self.outages_ms.setdefault(what, []).append(outage_ms)
        print(f"{self.program.name}, {what}: {outage_ms:.0f} ms", file=sys.stderr)


def failover_rows() -> list[Row]:
    what = "leader killed to next acknowledged CreateTopics"
    with ExitStack() as resources:
        contenders = _contenders(resources)
        for _ in range(KILLS):
            for contender in contenders:
                for each in contenders:
                    each.settle()
                contender.kill_leader(what)
    return _rows(what, contenders)


def cold_start_rows() -> list[Row]:
    """Take turns at killing and starting; medians."""
    with ExitStack() as resources:
        contenders = _contenders(resources)
        cases = {
            f"all killed, {count} of 3 started to next CreateTopics": count
            for count in (len(contenders[0].quorum.ports), MAJORITY)
        }
        for number in range(STARTS):
            for contender in contenders:
                for what, count in cases.items():
                    contender.kill_all(what, count=count, round_number=number)
    return [row for what in cases for row in _rows(what, contenders)]


def _contenders(resources: ExitStack) -> list[Contender]:
    return [Contender(program, resources) for program in (kvorum(), kafka())]


def _rows(what: str, contenders: list[Contender]) -> list[Row]:
    ours, theirs = contenders
    return outage_rows(what, theirs.program.name, ours.outages_ms[what], theirs.outages_ms[what])


def _started(ports: dict[int, int], leader_id: int, count: int, round_number: int) -> list[int]:
    """Return the nodes to start, in order; where one is left out, every other time the leader."""
    rest = [node_id for node_id in ports if node_id != leader_id]
    if round_number % 2:
        return [*rest, leader_id][:count]
    return [leader_id, *rest][:count]


SETTLE_SECONDS = 20.0
WATCH_SECONDS = 60.0


def idle_rows() -> list[Row]:
    """Let both quorums settle, then measure processor and memory.

    Both quorums run at the same time at default settings, without clients. The figures for
    processor and memory are those of the most expensive node of each quorum, usually the leader.
    """
    with ExitStack() as resources:
        quorums = [_running(program, resources) for program in (kvorum(), kafka())]
        time.sleep(SETTLE_SECONDS)
        before = [_used_seconds(quorum) for quorum in quorums]
        started = time.perf_counter()
        time.sleep(WATCH_SECONDS)
        passed = time.perf_counter() - started
        shares = [
            100 / passed * max(now - then for now, then in zip(*each, strict=True))
            for each in zip(map(_used_seconds, quorums), before, strict=True)
        ]
        resident = [max(quorum.resident_mib(each) for each in quorum.running) for quorum in quorums]
        for quorum in quorums:
            quorum.assert_running()
    peer = quorums[1].program.name
    return [
        Row("processor of an idle controller, of one core", peer, shares[0], shares[1], "%"),
        Row("resident memory of an idle controller", peer, resident[0], resident[1], "MiB"),
    ]


def _running(program: Program, resources: ExitStack) -> QuorumProcesses:
    folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
    quorum = resources.enter_context(QuorumProcesses(program, folder))
    client = ControllerClient("idle")
    client.settled_leader(quorum.running)
    client.close()
    return quorum


def _used_seconds(quorum: QuorumProcesses) -> list[float]:
    return [quorum.processor_seconds(each) for each in quorum.running]
