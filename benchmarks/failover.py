"""The outage of a quorum of three after its leader is killed, ours beside real Kafka.

Both quorums run all the time, at default settings, and take turns: after a kill -9 of the leader, a
client asks the two others for a topic until one acknowledges it; then the killed node is started
again.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.controller_client import ControllerClient
from benchmarks.quorum_processes import Program, QuorumProcesses, kafka, kvorum
from benchmarks.report import Row, outage_rows

KILLS = 20


class Contender:
    """A running quorum, and the client that finds its leader."""

    def __init__(self, program: Program, resources: ExitStack) -> None:
        self.program = program
        self.outages_ms: list[float] = []
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        self._quorum = resources.enter_context(QuorumProcesses(program, folder))
        self._client = ControllerClient("failover")
        resources.callback(self._client.close)

    def settle(self) -> int:
        """Wait until every node is running and close to the leader; return the leader's id."""
        return self._client.settled_leader(self._quorum.running)

    def kill_leader(self) -> None:
        """Kill the leader of a settled quorum, and record the length of the outage."""
        leader_id = self.settle()
        self._client.play_broker(self._quorum.running.values())
        self._client.create_topic(self._quorum.running.values())
        before = time.perf_counter()
        self._quorum.kill(leader_id)
        after = self._client.create_topic(self._quorum.running.values())
        self._quorum.assert_running()
        self.outages_ms.append((after - before) * 1000)
        self._quorum.start(leader_id)


def rows() -> list[Row]:
    """Kill leaders in turns, and return the medians."""
    with ExitStack() as resources:
        contenders = [Contender(program, resources) for program in (kvorum(), kafka())]
        for number in range(1, KILLS + 1):
            for contender in contenders:
                for each in contenders:
                    each.settle()
                contender.kill_leader()
                outage_ms = contender.outages_ms[-1]
                print(
                    f"{contender.program.name}, kill {number}: {outage_ms:.0f} ms", file=sys.stderr
                )
    ours, theirs = contenders
    what = "leader killed to next acknowledged CreateTopics"
    return outage_rows(what, theirs.program.name, ours.outages_ms, theirs.outages_ms)
