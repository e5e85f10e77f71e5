"""How many topics a second a quorum of three makes, ours beside real Kafka.

Both run at default settings, with one broker that is played to each: the topics have one partition
on it, and no broker's own work is in the figure. One client waits for each answer before it asks
again. The two take turns; the first turn of each is not counted.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.controller_client import ControllerClient
from benchmarks.played_brokers import PlayedBrokers
from benchmarks.quorum_processes import Program, QuorumProcesses, kafka, kvorum
from benchmarks.report import Row
from benchmarks.topic_writer import TopicShape, TopicWriter

ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Case:
    """A way to ask, and how many topics each side makes in a turn: some seconds' worth."""

    name: str
    per_request: int
    turn_topics: Mapping[str, int]


CASES = (
    Case("topics made, one per request", 1, {"kvorum": 300, "Kafka": 60}),
    Case("topics made, 100 per request", 100, {"kvorum": 3000, "Kafka": 3000}),
)


class Contender:
    """A running quorum with a broker, and the client that asks its leader for topics."""

    def __init__(self, program: Program, resources: ExitStack) -> None:
        self.program = program
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        quorum = resources.enter_context(QuorumProcesses(program, folder))
        client = ControllerClient("writes")
        leader_id = client.settled_leader(quorum.running)
        client.close()
        resources.enter_context(PlayedBrokers(quorum, count=1))
        self._writer = TopicWriter(quorum.running[leader_id], "topic")
        resources.callback(self._writer.close)

    def rate(self, case: Case) -> float:
        """Return how many topics a second were made in one turn."""
        count = case.turn_topics[self.program.name.split()[0]]
        seconds = self._writer.create(count, per_request=case.per_request, shape=TopicShape())
        return count / seconds


def rows(*, rounds: int = ROUNDS) -> list[Row]:
    """Take turns; medians."""
    with ExitStack() as resources:
        contenders = [Contender(program, resources) for program in (kvorum(), kafka())]
        return [_row(case, contenders, rounds) for case in CASES]


def _row(case: Case, contenders: list[Contender], rounds: int) -> Row:
    rates: list[list[float]] = [[], []]
    for number in range(rounds + 1):
        for contender, found in zip(contenders, rates, strict=True):
            rate = contender.rate(case)
            print(f"{contender.program.name}, {case.name}: {rate:.0f}/s", file=sys.stderr)
            if number:
                found.append(rate)
    ours, theirs = map(statistics.median, rates)
    return Row(case.name, contenders[1].program.name, ours, theirs, "/s", is_rate=True)
