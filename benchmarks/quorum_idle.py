"""The cost of an idle controller in a quorum of three, ours beside real Kafka.

Both quorums run at the same time at default settings, without clients. The figures for processor
and memory are those of the most expensive node of each quorum, usually the leader.
"""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.controller_client import ControllerClient
from benchmarks.quorum_processes import Program, QuorumProcesses, kafka, kvorum
from benchmarks.report import Row

SETTLE_SECONDS = 20.0
WATCH_SECONDS = 60.0


def rows() -> list[Row]:
    """Let both quorums settle, then measure processor and memory."""
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
