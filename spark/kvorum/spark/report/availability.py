"""When partitions were offline, under-replicated or below their minimal ISR, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from kvorum.history.intervals import IntervalEnd
from kvorum.history.tables import BrokerState, Condition, LeaderChangeCause
from kvorum.metadata.partition import NO_LEADER
from kvorum.spark.report.conditions import field, is_in
from kvorum.spark.report.rows import MISSING, Int64s, Rows
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import DAY_MS, SECOND_MS, Intervals, TimeWindow, highest_counts

_Place: TypeAlias = "tuple[str, int, int]"
"""A topic's id, a partition and an offset."""

_ROW_COLUMNS: Final = (
    "topic_name",
    "topic_id",
    "partition_id",
    "from_offset",
    "to_offset",
    "begins_earlier",
    "end_reason",
)
_CHANGE_COLUMNS: Final = (
    "topic_id",
    "partition_id",
    "offset",
    "old_leader",
    "new_leader",
    "is_unclean",
    "cause",
)

COLUMNS: Final = (
    "topic_name",
    "topic_id",
    "partition_id",
    "condition",
    "from_offset",
    "from_time",
    "begins_earlier",
    "to_offset",
    "to_time",
    "end_reason",
)
"""The columns of the table that the report reads."""
DAYS_MAX: Final = 14
"""The number of days with outages that the report shows."""
OUTAGES_PER_DAY_MAX: Final = 40
"""The number of outages that are drawn for one day."""
SLOWEST_MAX: Final = 12
"""The number of incidents that are listed by their length."""
OPEN_MAX: Final = 12
"""The number of incidents that are listed as still open."""
SAME_TIME_MS: Final = SECOND_MS
"""Intervals that begin and end within this time of each other are one incident."""


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """A leader change at the begin or the end of an interval."""

    old_leader: int | None
    new_leader: int
    is_unclean: bool
    cause: str


@dataclass(frozen=True, slots=True)
class MissingReplica:
    """A broker whose replica was out of the ISR, and for how long it was not in service."""

    broker_id: int
    out_of_service_ms: int


@dataclass(frozen=True, slots=True)
class Outage:
    """An interval in which a partition was in a condition; an open one ends with the window."""

    topic_name: str
    partition_id: int
    begin_ms: int
    end_ms: int
    is_open: bool
    begins_earlier: bool
    is_deleted: bool
    began_with: LeaderChange | None
    ended_with: LeaderChange | None
    missing: tuple[MissingReplica, ...]

    @property
    def duration_ms(self) -> int:
        """Its duration, until the end of the window where it is open."""
        return self.end_ms - self.begin_ms

    @property
    def partition(self) -> str:
        """The partition as Kafka writes it: orders-3."""
        return f"{self.topic_name}-{self.partition_id}"


def explained(
    tables: ClusterTables, rows: Rows, intervals: Intervals, indices: Int64s
) -> tuple[Outage, ...]:
    """Return rows of the table `availability` with the causes that other tables have.

    `indices` says for each row which of `intervals` is its own.
    """
    if rows.count == 0:
        return ()
    found = rows.dicts(*_ROW_COLUMNS)
    offsets = {row["from_offset"] for row in found} | {row["to_offset"] for row in found}
    changes = _leader_changes(tables, offsets - {None})
    missing = _missing_replicas(tables, {row["from_offset"] for row in found})
    out = _out_of_service(tables, {one for brokers in missing.values() for one in brokers})
    outages: list[Outage] = []
    for row, index in zip(found, indices, strict=True):
        begin, end = int(intervals.begins[index]), int(intervals.ends[index])
        outages.append(
            Outage(
                topic_name=row["topic_name"],
                partition_id=row["partition_id"],
                begin_ms=begin,
                end_ms=end,
                is_open=bool(intervals.is_open[index]),
                begins_earlier=bool(row["begins_earlier"]),
                is_deleted=row["end_reason"] == IntervalEnd.TOPIC_DELETED,
                began_with=changes.get(_place(row, "from_offset")),
                ended_with=changes.get(_place(row, "to_offset")),
                missing=tuple(
                    MissingReplica(each, _overlap_ms(out.get(each, ()), begin, end))
                    for each in missing.get(_place(row, "from_offset"), ())
                ),
            )
        )
    return tuple(outages)


def _place(row: Mapping[str, Any], offset: str) -> _Place:
    return row["topic_id"], row["partition_id"], row[offset]


def _leader_changes(tables: ClusterTables, offsets: Iterable[int]) -> dict[_Place, LeaderChange]:
    rows = tables.read("leader_changes", _CHANGE_COLUMNS, is_in("offset", offsets))
    return {
        _place(row, "offset"): LeaderChange(
            row["old_leader"], row["new_leader"], row["is_unclean"], row["cause"]
        )
        for row in rows.dicts(*_CHANGE_COLUMNS)
        if NO_LEADER in {row["old_leader"], row["new_leader"]}
    }


def _missing_replicas(
    tables: ClusterTables, offsets: Iterable[int]
) -> dict[_Place, tuple[int, ...]]:
    """Return the replicas outside the ISR of the partitions that changed at `offsets`."""
    columns = ("topic_id", "partition_id", "from_offset", "replicas", "adding_replicas", "isr")
    rows = tables.read("partition_timeline", columns, is_in("from_offset", offsets))
    return {
        _place(row, "from_offset"): tuple(
            each
            for each in row["replicas"]
            if each not in row["isr"] and each not in row["adding_replicas"]
        )
        for row in rows.dicts(*columns)
    }


def _out_of_service(
    tables: ClusterTables, broker_ids: Iterable[int]
) -> Mapping[int, list[tuple[int, int]]]:
    """Return from when to when brokers were fenced or in controlled shutdown."""
    where = is_in("broker_id", broker_ids) & (field("state") != BrokerState.UNFENCED.value)
    rows = tables.read("broker_states", ("broker_id", "from_time", "to_time"), where)
    begins, ends = rows.times_ms("from_time").tolist(), rows.times_ms("to_time").tolist()
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for broker, begin, end in zip(rows.values("broker_id"), begins, ends, strict=True):
        spans[broker].append((begin, end))
    return spans


def _overlap_ms(spans: Iterable[tuple[int, int]], begin_ms: int, end_ms: int) -> int:
    return sum(
        max(0, (end_ms if end == MISSING else min(end, end_ms)) - max(begin, begin_ms))
        for begin, end in spans
    )


@dataclass(frozen=True, slots=True)
class Incident:
    """Intervals of one condition that began and ended together; the longest stands for all."""

    longest: Outage
    partition_count: int


@dataclass(frozen=True, slots=True)
class ConditionFacts:
    """One condition over the window.

    `highest` has for each step the highest number of partitions at one time. `open_count` is the
    number of partitions at the window's end; `open` are the longest of these, and of partitions
    without a leader each is an incident of its own.
    """

    condition: Condition
    highest: Int64s
    interval_count: int
    partition_count: int
    total_ms: int
    open_count: int
    open: tuple[Incident, ...]


@dataclass(frozen=True, slots=True)
class OfflineDay:
    """The partitions without a leader on one day of UTC, the longest ones first.

    Lengths are those within the day. `more_count` intervals are not listed.
    """

    day_ms: int
    partition_count: int
    total_ms: int
    outages: tuple[Outage, ...]
    more_count: int


@dataclass(frozen=True, slots=True)
class AvailabilityFacts:
    """The availability of a cluster's partitions over the window.

    `was_led_until_shutdown` is whether there are partitions without a leader at the window's end,
    and each lost it to the controlled shutdown of its leader.
    """

    conditions: Mapping[Condition, ConditionFacts]
    offline_days: tuple[OfflineDay, ...]
    more_days_count: int
    slowest: Mapping[Condition, tuple[Incident, ...]]
    was_led_until_shutdown: bool


def availability_facts(tables: ClusterTables, window: TimeWindow) -> AvailabilityFacts:
    """Return what the table `availability` shows of the window."""
    rows = tables.read("availability", COLUMNS)
    by_condition = {
        condition: _Spans.of(rows.where(rows.equal("condition", condition)), window)
        for condition in Condition
    }
    days, more_days = _offline_days(tables, by_condition[Condition.OFFLINE], window)
    return AvailabilityFacts(
        {
            condition: _condition_facts(tables, condition, spans, window)
            for condition, spans in by_condition.items()
        },
        days,
        more_days,
        {
            condition: _incidents(tables, spans, _all_longest_first(spans), SLOWEST_MAX)
            for condition, spans in by_condition.items()
        },
        _was_led_until_shutdown(tables, by_condition[Condition.OFFLINE]),
    )


def _was_led_until_shutdown(tables: ClusterTables, offline: _Spans) -> bool:
    open_rows = offline.rows.where(offline.intervals.is_open)
    places = {_place(row, "from_offset") for row in open_rows.dicts(*_ROW_COLUMNS)}
    changes = _leader_changes(tables, {offset for _, _, offset in places})
    return bool(places) and all(
        place in changes and changes[place].cause == LeaderChangeCause.CONTROLLED_SHUTDOWN
        for place in places
    )


@dataclass(frozen=True, slots=True)
class _Spans:
    """Rows of one condition that overlap the window, with their intervals.

    `whole` are not cut off at the window's begin.
    """

    rows: Rows
    intervals: Intervals
    whole: Intervals

    @classmethod
    def of(cls, rows: Rows, window: TimeWindow) -> _Spans:
        begins, ends = rows.times_ms("from_time"), rows.times_ms("to_time")
        reaches_in = (ends == MISSING) | (ends > window.begin_ms) | (begins == window.begin_ms)
        overlaps = reaches_in & ((begins == MISSING) | (begins <= window.end_ms))
        begins, ends = begins[overlaps], ends[overlaps]
        return cls(
            rows.where(overlaps),
            Intervals.within(begins, ends, window),
            Intervals.until_end(begins, ends, window),
        )

    def outages(self, tables: ClusterTables, indices: Int64s) -> tuple[Outage, ...]:
        return explained(tables, self.rows.at(indices), self.whole, indices)


def _condition_facts(
    tables: ClusterTables, condition: Condition, spans: _Spans, window: TimeWindow
) -> ConditionFacts:
    intervals = spans.intervals
    open_indices = _longest_first(spans.whole.lengths_ms, np.flatnonzero(intervals.is_open))
    if condition is Condition.OFFLINE:
        open_incidents = tuple(
            Incident(outage, 1) for outage in spans.outages(tables, open_indices[:OPEN_MAX])
        )
    else:
        open_incidents = _incidents(tables, spans, open_indices, OPEN_MAX)
    return ConditionFacts(
        condition,
        highest_counts(intervals, window.edges_ms()),
        interval_count=len(intervals.begins),
        partition_count=_partition_count(spans.rows),
        total_ms=int(intervals.lengths_ms.sum()),
        open_count=len(open_indices),
        open=open_incidents,
    )


def _offline_days(
    tables: ClusterTables, spans: _Spans, window: TimeWindow
) -> tuple[tuple[OfflineDay, ...], int]:
    """Return the latest days with partitions offline, latest first, and how many there are more."""
    days = list(_touched_days(spans.intervals, window))
    return (
        tuple(_offline_day(tables, spans, day) for day in days[:DAYS_MAX]),
        max(0, len(days) - DAYS_MAX),
    )


def _touched_days(intervals: Intervals, window: TimeWindow) -> Iterator[int]:
    """Yield the begin of each day that an interval touches, latest first."""
    if len(intervals.begins) == 0:
        return
    edges = np.arange(window.begin_ms // DAY_MS, window.end_ms // DAY_MS + 2, dtype=np.int64)
    first = np.searchsorted(edges * DAY_MS, intervals.begins, side="right") - 1
    last = np.searchsorted(
        edges * DAY_MS, np.maximum(intervals.begins, intervals.ends - 1), "right"
    )
    changes = np.zeros(len(edges) + 1, dtype=np.int64)
    np.add.at(changes, first, 1)
    np.add.at(changes, last, -1)
    for index in np.flatnonzero(np.cumsum(changes)[: len(edges)])[::-1]:
        yield int(edges[index]) * DAY_MS


def _offline_day(tables: ClusterTables, spans: _Spans, day_ms: int) -> OfflineDay:
    intervals = spans.intervals
    last_moments = np.maximum(intervals.begins, intervals.ends - 1)
    indices = np.flatnonzero((intervals.begins < day_ms + DAY_MS) & (last_moments >= day_ms))
    within = Intervals.within(
        intervals.begins, intervals.ends, TimeWindow(day_ms, day_ms + DAY_MS)
    ).lengths_ms
    chosen = _longest_first(within, indices)
    shown = chosen[:OUTAGES_PER_DAY_MAX]
    return OfflineDay(
        day_ms,
        partition_count=_partition_count(spans.rows.at(indices)),
        total_ms=int(within[indices].sum()),
        outages=spans.outages(tables, shown),
        more_count=len(chosen) - len(shown),
    )


def _incidents(
    tables: ClusterTables, spans: _Spans, longest_first: Int64s, count_max: int
) -> tuple[Incident, ...]:
    """Return the longest intervals, with those that began and ended together as one."""
    intervals = spans.whole
    chosen: list[int] = []
    counts: list[int] = []
    remaining = longest_first
    while len(remaining) and len(chosen) < count_max:
        longest = int(remaining[0])
        together = (
            np.abs(intervals.begins[remaining] - intervals.begins[longest]) <= SAME_TIME_MS
        ) & (np.abs(intervals.ends[remaining] - intervals.ends[longest]) <= SAME_TIME_MS)
        chosen.append(longest)
        counts.append(int(together.sum()))
        remaining = remaining[~together]
    return tuple(map(Incident, spans.outages(tables, np.array(chosen, dtype=np.int64)), counts))


def _all_longest_first(spans: _Spans) -> Int64s:
    lengths = spans.whole.lengths_ms
    return _longest_first(lengths, np.arange(len(lengths), dtype=np.int64))


def _longest_first(lengths_ms: Int64s, indices: Int64s) -> Int64s:
    """Return `indices` of intervals by their lengths, the longest one first."""
    ordered: Int64s = indices[np.argsort(-lengths_ms[indices], kind="stable")]
    return ordered


def _partition_count(rows: Rows) -> int:
    return rows.distinct_count("topic_id", "partition_id")
