"""Brokers over time, in service or out of it, and the leaders among them: balance, changes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kvorum.history.tables import BrokerState
from kvorum.metadata.partition import NO_LEADER
from kvorum.spark.report.conditions import during, holds_at
from kvorum.spark.report.rows import MISSING, Int64s, Rows
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import Intervals, TimeWindow, highest_counts, mean_counts

SPANS_MAX: Final = 80
"""More spans of one broker are drawn as the worst state of each step."""

_FROM_BAD_TO_GOOD: Final = (
    BrokerState.FENCED,
    BrokerState.CONTROLLED_SHUTDOWN,
    BrokerState.UNFENCED,
)


@dataclass(frozen=True, slots=True)
class StateSpan:
    """A broker was in a state; `is_summary` where shorter spans of other states are inside."""

    state: BrokerState
    begin_ms: int
    end_ms: int
    is_summary: bool = False


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker over the window; `state` is that at its end, None if it is not registered then.

    `fenced_count` counts how often it left service for the fenced state; a broker that registers is
    fenced as well, and this is not counted.
    """

    broker_id: int
    rack: str | None
    state: BrokerState | None
    state_since_ms: int
    incarnation_count: int
    fenced_count: int
    out_of_service_ms: int
    longest_ms: int
    spans: tuple[StateSpan, ...]

    @property
    def is_in_service(self) -> bool:
        """Whether it is unfenced and not in controlled shutdown."""
        return self.state is BrokerState.UNFENCED


def broker_facts(tables: ClusterTables, window: TimeWindow) -> tuple[BrokerFacts, ...]:
    """Return what `broker_states` shows of the window, by broker."""
    columns = ("broker_id", "incarnation_id", "state", "from_offset", "from_time", "to_time")
    rows = tables.read("broker_states", columns)
    begins, ends = rows.times_ms("from_time"), rows.times_ms("to_time")
    rows = rows.where(window.overlaps(begins, ends))
    rows = rows.at(np.lexsort((rows.integers("from_offset"), rows.integers("broker_id"))))
    brokers = rows.integers("broker_id")
    racks = _racks(tables)
    facts: list[BrokerFacts] = []
    for broker in np.unique(brokers):
        begin, end = np.searchsorted(brokers, [broker, broker + 1])
        part = rows.part(int(begin), int(end))
        facts.append(_facts_of(int(broker), part, window, racks.get(int(broker))))
    return tuple(facts)


def _facts_of(broker_id: int, rows: Rows, window: TimeWindow, rack: str | None) -> BrokerFacts:
    begins, ends = rows.times_ms("from_time"), rows.times_ms("to_time")
    intervals = Intervals.within(begins, ends, window)
    states = [BrokerState(each) for each in rows.values("state")]
    is_out = np.array([each is not BrokerState.UNFENCED for each in states])
    incarnations = rows.values("incarnation_id")
    was_fenced = [
        state is BrokerState.FENCED and before is not BrokerState.FENCED and one == same
        for before, state, one, same in zip(
            states, states[1:], incarnations, incarnations[1:], strict=False
        )
    ]
    stretches = _stretches(intervals, is_out)
    return BrokerFacts(
        broker_id=broker_id,
        rack=rack,
        state=states[-1] if intervals.is_open[-1] else None,
        state_since_ms=int(begins[-1] if intervals.is_open[-1] else ends[-1]),
        incarnation_count=len(set(incarnations)),
        fenced_count=sum(was_fenced),
        out_of_service_ms=sum(stretches),
        longest_ms=max(stretches, default=0),
        spans=_spans(states, intervals, window),
    )


def _stretches(intervals: Intervals, is_out: Any) -> list[int]:
    """Return the lengths of the times in which intervals of `is_out` follow each other."""
    lengths: list[int] = []
    end: int | None = None
    begins, ends = intervals.begins.tolist(), intervals.ends.tolist()
    for out, begin, until in zip(is_out, begins, ends, strict=True):
        if out and begin == end:
            lengths[-1] += until - begin
        elif out:
            lengths.append(until - begin)
        end = until if out else None
    return lengths


def _spans(
    states: list[BrokerState], intervals: Intervals, window: TimeWindow
) -> tuple[StateSpan, ...]:
    if len(states) > SPANS_MAX:
        return tuple(_worst_of_steps(states, intervals, window))
    return tuple(
        StateSpan(state, begin, end)
        for state, begin, end in zip(
            states, intervals.begins.tolist(), intervals.ends.tolist(), strict=True
        )
        # A broker that registers is fenced, often for no time at all.
        if begin < end
    )


def _worst_of_steps(
    states: list[BrokerState], intervals: Intervals, window: TimeWindow
) -> Iterator[StateSpan]:
    """Yield the worst state of each step, with equal ones in a row as one span."""
    edges = window.edges_ms()
    worst: list[BrokerState | None] = [None] * (len(edges) - 1)
    for state in reversed(_FROM_BAD_TO_GOOD):
        chosen = np.flatnonzero([each is state for each in states])
        for step in np.flatnonzero(highest_counts(intervals.at(chosen), edges)).tolist():
            worst[step] = state
    begin = 0
    for step in range(1, len(worst) + 1):
        if step == len(worst) or worst[step] is not worst[begin]:
            found = worst[begin]
            if found is not None:
                yield StateSpan(found, int(edges[begin]), int(edges[step]), is_summary=True)
            begin = step


def _racks(tables: ClusterTables) -> Mapping[int, str | None]:
    rows = tables.read("brokers", ("broker_id", "rack"))
    return dict(zip(rows.values("broker_id"), rows.values("rack"), strict=True))


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
    return LeadershipFacts(
        led=_led_over_time(tables, window),
        loads=_loads(current, leaders, preferred, broker_ids),
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
