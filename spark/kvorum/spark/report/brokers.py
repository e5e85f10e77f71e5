"""Brokers over time: in service, fenced, in controlled shutdown, or not registered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kvorum.spark.history.tables import BrokerState
from kvorum.spark.report.rows import Rows
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import Intervals, TimeWindow, highest_counts

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
    overlaps = window.overlaps(begins, ends)
    rows = rows.where(overlaps)
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
