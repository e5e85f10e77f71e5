"""How many topics a second a quorum makes.

The topics have one partition, on brokers that are played: no broker's own work is in the figure.
One client waits for each answer before it asks again. The programs take turns; the first turn of
each is not counted.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.filled_quorum import FilledQuorum
from benchmarks.report import Row
from benchmarks.topic_writer import TopicShape

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Case:
    """A way to ask, and how many topics each side makes in a turn: some seconds' worth."""

    name: str
    per_request: int
    turn_topics: Mapping[str, int]


CASES = (
    Case("topics, one per request", 1, {"kvorum": 300, "Kafka": 60}),
    Case("topics, 100 per request", 100, {"kvorum": 3000, "Kafka": 3000}),
)


def rows(quorums: Sequence[FilledQuorum], *, label: str, rounds: int = ROUNDS) -> list[Row]:
    """Take turns; medians."""
    return [_row(case, quorums, label, rounds) for case in CASES]


def _row(case: Case, quorums: Sequence[FilledQuorum], label: str, rounds: int) -> Row:
    rates: list[list[float]] = [[] for _ in quorums]
    for number in range(rounds + 1):
        for quorum, found in zip(quorums, rates, strict=True):
            rate = _rate(case, quorum)
            print(f"{quorum.program.name}, {label}: {case.name}: {rate:.0f}/s", file=sys.stderr)
            if number:
                found.append(rate)
    ours, theirs = statistics.median(rates[0]), statistics.median(rates[-1])
    what = f"{label}: {case.name}"
    return Row(what, quorums[-1].program.name, ours, theirs, "/s", is_rate=True)


def _rate(case: Case, quorum: FilledQuorum) -> float:
    """Return how many topics a second were made in one turn."""
    count = case.turn_topics[quorum.program.name.split()[0]]
    seconds = quorum.make_topics(count, per_request=case.per_request, shape=TopicShape())
    return count / seconds
