"""Single intervals in which a partition was not fully available, with what explains them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kvorum.metadata.partition import NO_LEADER
from kvorum.spark.history.intervals import IntervalEnd
from kvorum.spark.history.tables import BrokerState
from kvorum.spark.report.conditions import field, is_in
from kvorum.spark.report.rows import MISSING, Int64s, Rows
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import Intervals

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
