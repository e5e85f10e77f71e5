"""The figures of a candidate under the loads of Kafka's perf tools, and the rows they make."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from benchmarks.data.end_to_end import p99_ms
from benchmarks.data.perf_tools import Load, PerfTools
from benchmarks.report import Row


@dataclass
class Figures:
    """The figures of one candidate, one for each round; none for what it was not asked."""

    large_mib_per_s: list[float] = field(default_factory=list[float])
    small_records_per_s: list[float] = field(default_factory=list[float])
    consumed_mib_per_s: list[float] = field(default_factory=list[float])
    end_to_end_p99_ms: list[float] = field(default_factory=list[float])
    memory_mib: list[float] = field(default_factory=list[float])
    first_record_s: list[float] = field(default_factory=list[float])


class Loads(NamedTuple):
    """The loads of a round, after some of each to warm up."""

    large: Load
    small: Load
    warm_up: tuple[Load, ...]


class Running(Protocol):
    """One broker that runs, or several of a cluster."""

    @property
    def servers(self) -> str:
        """The bootstrap.servers."""
        ...

    @property
    def memory_mib(self) -> float:
        """The resident memory at this moment."""
        ...

    def create_topic(self, name: str) -> None:
        """Create a topic with one partition."""
        ...


def measure(running: Running, tools: PerfTools, loads: Loads, figures: Figures) -> None:
    """Add the figures of one round."""
    servers = running.servers
    for name in ("warm-up", "large", "small", "paced"):
        running.create_topic(name)
    for load in loads.warm_up:
        tools.produce(servers, "warm-up", load)
    tools.consume(servers, "warm-up", loads.warm_up[0].records)
    figures.large_mib_per_s.append(tools.produce(servers, "large", loads.large).mib_per_s)
    figures.small_records_per_s.append(tools.produce(servers, "small", loads.small).records_per_s)
    figures.consumed_mib_per_s.append(
        tools.consume(servers, "large", loads.large.records).mib_per_s
    )
    figures.end_to_end_p99_ms.append(p99_ms(servers, "paced"))
    figures.memory_mib.append(running.memory_mib)


def median_rows(
    wanted: Iterable[tuple[str, str, str]], peer: str, ours: Figures, theirs: Figures
) -> list[Row]:
    """Return a row for each (text, unit, field of Figures) that the peer has figures of."""
    return [
        Row(
            what,
            peer,
            statistics.median(getattr(ours, name)),
            statistics.median(getattr(theirs, name)),
            unit,
            is_rate=unit.endswith("/s"),
        )
        for what, unit, name in wanted
        if getattr(theirs, name)
    ]
