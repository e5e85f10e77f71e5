"""The number of partitions that each broker leads: over time, and at the window's end."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvorum.metadata.partition import NO_LEADER
from kvorum.spark.report.conditions import during, holds_at
from kvorum.spark.report.rows import MISSING, Int64s, Rows
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import Intervals, TimeWindow, mean_counts


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The partitions of a broker at the window's end.

    `preferred_count` counts those whose first replica it is: Kafka would have it lead these.
    """

    broker_id: int
    leader_count: int
    preferred_count: int
    replica_count: int
    in_sync_count: int

    @property
    def difference(self) -> int:
        """The partitions that it leads beyond its preferred ones; fewer where negative."""
        return self.leader_count - self.preferred_count


@dataclass(frozen=True, slots=True)
class CauseCount:
    """Leader changes of one cause: all, unclean ones, and those that left no leader."""

    cause: str
    count: int
    unclean_count: int
    leaderless_count: int


@dataclass(frozen=True, slots=True)
class LeadershipFacts:
    """Leadership over the window; `led` has for each leader the mean of each step."""

    led: Mapping[int, NDArray[np.float64]]
    loads: tuple[BrokerLoad, ...]
    partition_count: int
    not_preferred_count: int
    causes: tuple[CauseCount, ...]

    @property
    def skew(self) -> float | None:
        """The most partitions that a broker leads, as a multiple of the mean over brokers."""
        counts = [load.leader_count for load in self.loads]
        total = sum(counts)
        return None if total == 0 else max(counts) * len(counts) / total


def leadership_facts(
    tables: ClusterTables, window: TimeWindow, broker_ids: frozenset[int]
) -> LeadershipFacts:
    """Return what `partition_timeline` and `leader_changes` show of the window.

    `broker_ids` are brokers that are registered at its end, which may have no partition.
    """
    columns = ("leader", "isr", "replicas")
    current = tables.read("partition_timeline", columns, holds_at(window.end_ms))
    leaders, preferred = current.integers("leader"), current.first_items("replicas")
    loads = _loads(current, leaders, preferred, broker_ids)
    return LeadershipFacts(
        led=_led_over_time(tables, window),
        loads=loads,
        partition_count=current.count,
        not_preferred_count=int(((leaders != preferred) & (leaders != NO_LEADER)).sum()),
        causes=_causes(tables, window),
    )


def _led_over_time(tables: ClusterTables, window: TimeWindow) -> dict[int, NDArray[np.float64]]:
    rows = tables.read("partition_timeline", ("leader", "from_time", "to_time"))
    leaders = rows.integers("leader")
    intervals = Intervals.within(rows.times_ms("from_time"), rows.times_ms("to_time"), window)
    order = np.argsort(leaders, kind="stable")
    sorted_leaders = leaders[order]
    edges = window.edges_ms()
    led: dict[int, NDArray[np.float64]] = {}
    for leader in np.unique(leaders):
        begin, end = np.searchsorted(sorted_leaders, [leader, leader + 1])
        if leader != NO_LEADER:
            led[int(leader)] = mean_counts(intervals.at(order[begin:end]), edges)
    return led


def _loads(
    current: Rows, leaders: Int64s, preferred: Int64s, broker_ids: frozenset[int]
) -> tuple[BrokerLoad, ...]:
    led, first = _counted(leaders), _counted(preferred)
    replicas, in_sync = _counted(current.items("replicas")), _counted(current.items("isr"))
    known = sorted(({*led, *replicas} | broker_ids) - {NO_LEADER, MISSING})
    return tuple(
        BrokerLoad(one, led[one], first[one], replicas[one], in_sync[one]) for one in known
    )


def _counted(broker_ids: Int64s) -> Counter[int]:
    found: list[int] = broker_ids.tolist()
    return Counter(found)


def _causes(tables: ClusterTables, window: TimeWindow) -> tuple[CauseCount, ...]:
    columns = ("cause", "is_unclean", "new_leader")
    rows = tables.read("leader_changes", columns, during("time", window))
    if rows.count == 0:
        return ()
    codes, causes = rows.coded("cause")
    is_unclean, is_lost = rows.flags("is_unclean"), rows.integers("new_leader") == NO_LEADER
    counts = [
        CauseCount(
            cause,
            int((codes == code).sum()),
            int(is_unclean[codes == code].sum()),
            int(is_lost[codes == code].sum()),
        )
        for code, cause in enumerate(causes)
    ]
    return tuple(sorted(counts, key=lambda each: -each.count))
