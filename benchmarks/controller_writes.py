"""The number of topics that a quorum creates per second.

The topics have one partition, on simulated brokers, so the figure contains no work of a broker. One
client waits for each response before it sends the next request. The programs take turns; the first
turn of each is not counted.
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
    """A size of requests, and the topics that each program creates in a turn of some seconds."""

    name: str
    per_request: int
    turn_topics: Mapping[str, int]


CASES = (
    Case("topics, one per request", 1, {"kvorum": 300, "Kafka": 60}),
    Case("topics, 100 per request", 100, {"kvorum": 3000, "Kafka": 3000}),
)


def rows(quorums: Sequence[FilledQuorum], *, label: str, rounds: int = ROUNDS) -> list[Row]:
    """Measure the quorums in turns, and return the medians."""
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
    """Return the number of topics created per second in one turn."""
    count = case.turn_topics[quorum.program.name.split()[0]]
    seconds = quorum.make_topics(count, per_request=case.per_request, shape=TopicShape())
    return count / seconds
