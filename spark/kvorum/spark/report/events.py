"""The latest changes in a cluster: one list of events of every kind."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

import numpy as np

from kvorum.history.intervals import IntervalEnd
from kvorum.history.tables import BrokerState, LeaderChangeCause
from kvorum.metadata.partition import NO_LEADER
from kvorum.spark.report.conditions import Condition, during, field
from kvorum.spark.report.quorum import QuorumFacts
from kvorum.spark.report.rows import Int64s
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.texts import count_text, cut_text
from kvorum.spark.report.time_window import SECOND_MS, TimeWindow
from kvorum.spark.report.value_history import ValueHistory

EVENTS_MAX: Final = 40
GROUP_GAP_MS: Final = 10 * SECOND_MS
"""Leader changes of one cause with shorter pauses are one event."""

_CAUSED_BY_OLD_LEADER: Final = (
    LeaderChangeCause.BROKER_FENCED,
    LeaderChangeCause.CONTROLLED_SHUTDOWN,
    LeaderChangeCause.BROKER_UNREGISTERED,
    LeaderChangeCause.BROKER_RESTARTED,
    LeaderChangeCause.DIRECTORY_FAILED,
)
"""The causes that lie with the broker that led before."""
_SENTENCES: Final[Mapping[str, str]] = {
    LeaderChangeCause.BROKER_FENCED: "Broker {broker} was fenced",
    LeaderChangeCause.CONTROLLED_SHUTDOWN: "Broker {broker} shut down in a controlled way",
    LeaderChangeCause.BROKER_UNREGISTERED: "Broker {broker} was unregistered",
    LeaderChangeCause.BROKER_RESTARTED: "Broker {broker} restarted uncleanly",
    LeaderChangeCause.DIRECTORY_FAILED: "A log directory of broker {broker} failed",
    LeaderChangeCause.BROKER_UNFENCED: "Broker {broker} was unfenced",
    LeaderChangeCause.PREFERRED_ELECTION: "Preferred leaders were elected",
    LeaderChangeCause.REASSIGNMENT: "Partitions were reassigned",
    LeaderChangeCause.UNCLEAN_ELECTION: "Leaders were elected uncleanly",
    LeaderChangeCause.PARTITION_CREATED: "{count} created",
    LeaderChangeCause.UNKNOWN: "Leaders changed for an unknown cause",
}


@unique
class Severity(Enum):
    """The weight of an event."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, in one line."""

    time_ms: int
    offset: int
    kind: str
    text: str
    severity: Severity


def latest_events(
    tables: ClusterTables,
    window: TimeWindow,
    *,
    quorum: QuorumFacts,
    values: tuple[ValueHistory, ...],
) -> tuple[Event, ...]:
    """Return the latest events of the window, latest first."""
    events = [
        *_leader_changes(tables, window),
        *_broker_changes(tables, window),
        *_controller_changes(tables, window),
        *_deleted_topics(tables, window),
        *_elections(quorum, window),
        *_value_changes(values),
    ]
    events.sort(key=lambda event: (event.time_ms, event.offset), reverse=True)
    return tuple(events[:EVENTS_MAX])


def group_labels(keys: Int64s, times_ms_: Int64s, gap_ms: int) -> Int64s:
    """Return for each row the number of its group.

    Rows are in one group if their keys are equal and no pause between them is longer than `gap_ms`.
    """
    order = np.lexsort((times_ms_, keys))
    is_new = (np.diff(keys[order]) != 0) | (np.diff(times_ms_[order]) > gap_ms)
    labels = np.empty(len(keys), dtype=np.int64)
    labels[order] = np.concatenate(([0], np.cumsum(is_new)))[: len(keys)]
    return labels


def _latest(
    tables: ClusterTables, table: str, window: TimeWindow, *, offset: str, time: str
) -> Condition | None:
    """Return the condition of the latest `EVENTS_MAX` rows of the window; None without any."""
    offsets = tables.read(table, (offset,), during(time, window)).integers(offset)
    if len(offsets) == 0:
        return None
    first = int(np.sort(offsets)[-EVENTS_MAX:][0])
    latest: Condition = during(time, window) & (field(offset) >= first)
    return latest


def _leader_changes(tables: ClusterTables, window: TimeWindow) -> Iterator[Event]:
    columns = ("offset", "time", "cause", "old_leader", "new_leader", "is_unclean")
    rows = tables.read("leader_changes", columns, during("time", window))
    if rows.count == 0:
        return
    codes, names = rows.coded("cause")
    old, new = rows.integers("old_leader"), rows.integers("new_leader")
    brokers = np.full(len(codes), NO_LEADER, dtype=np.int64)
    for code, name in enumerate(names):
        if name in _CAUSED_BY_OLD_LEADER:
            brokers[codes == code] = old[codes == code]
        elif name == LeaderChangeCause.BROKER_UNFENCED:
            brokers[codes == code] = new[codes == code]
    times, offsets = rows.times_ms("time"), rows.integers("offset")
    labels = group_labels(codes + (brokers + 1) * len(names), times, GROUP_GAP_MS)
    last_times = np.zeros(labels.max() + 1, dtype=np.int64)
    np.maximum.at(last_times, labels, times)
    unclean = rows.flags("is_unclean")
    for label in np.argsort(-last_times, kind="stable")[:EVENTS_MAX]:
        members = np.flatnonzero(labels == label)
        first = members[np.argmin(offsets[members])]
        yield _leader_change_event(
            names[int(codes[first])],
            broker=int(brokers[first]),
            time_ms=int(times[members].min()),
            offset=int(offsets[first]),
            count=len(members),
            lost=int((new[members] == NO_LEADER).sum()),
            unclean=int(unclean[members].sum()),
        )


def _leader_change_event(
    cause: str, *, broker: int, time_ms: int, offset: int, count: int, lost: int, unclean: int
) -> Event:
    partitions = count_text(count, "partition")
    sentence = _SENTENCES.get(cause, cause).format(broker=broker, count=partitions)
    if count - lost and cause != LeaderChangeCause.PARTITION_CREATED:
        sentence += f": {count_text(count - lost, 'partition')} changed leader"
    if lost:
        sentence += (
            f"{', ' if count - lost else ': '}{count_text(lost, 'partition')} lost the leader"
        )
    if unclean:
        sentence += f", {unclean:,} uncleanly"
    severity = Severity.WARNING if cause in _CAUSED_BY_OLD_LEADER else Severity.PLAIN
    if lost or unclean:
        severity = Severity.BAD
    return Event(time_ms, offset, "leaders", sentence, severity)


_STATE_EVENTS: Final[Mapping[str, tuple[str, Severity]]] = {
    BrokerState.FENCED: ("was fenced", Severity.BAD),
    BrokerState.UNFENCED: ("was unfenced", Severity.GOOD),
    BrokerState.CONTROLLED_SHUTDOWN: ("began its controlled shutdown", Severity.WARNING),
}


def _broker_changes(tables: ClusterTables, window: TimeWindow) -> Iterator[Event]:
    registrations = set(tables.read("broker_sessions", ("from_offset",)).values("from_offset"))
    where = _latest(tables, "broker_states", window, offset="from_offset", time="from_time")
    if where is not None:
        columns = ("broker_id", "state", "from_offset", "begins_earlier")
        rows = tables.read("broker_states", (*columns, "from_time"), where)
        times = rows.times_ms("from_time").tolist()
        for row, time in zip(rows.dicts(*columns), times, strict=True):
            text, severity = _STATE_EVENTS[row["state"]]
            if row["from_offset"] in registrations:
                text, severity = "registered", Severity.PLAIN
            if not row["begins_earlier"]:
                text = f"Broker {row['broker_id']} {text}"
                yield Event(time, row["from_offset"], "broker", text, severity)
    yield from _unregistrations(tables, window)


def _unregistrations(tables: ClusterTables, window: TimeWindow) -> Iterator[Event]:
    is_end = field("end_reason") == IntervalEnd.UNREGISTERED.value
    rows = tables.read(
        "broker_sessions", ("broker_id", "to_offset", "to_time"), is_end & during("to_time", window)
    )
    times = rows.times_ms("to_time").tolist()
    for row, time in zip(rows.dicts("broker_id", "to_offset"), times, strict=True):
        text = f"Broker {row['broker_id']} was unregistered"
        yield Event(time, row["to_offset"], "broker", text, Severity.WARNING)


def _controller_changes(tables: ClusterTables, window: TimeWindow) -> Iterator[Event]:
    columns = ("controller_id", "incarnation_id", "from_offset", "begins_earlier")
    rows = tables.read("controller_registrations", (*columns, "from_time"))
    times = rows.times_ms("from_time").tolist()
    incarnations: dict[int, str] = {}
    found = zip(rows.dicts(*columns), times, strict=True)
    for row, time in sorted(found, key=lambda each: each[0]["from_offset"]):
        controller, incarnation = row["controller_id"], row["incarnation_id"]
        is_known = incarnations.get(controller) == incarnation
        incarnations[controller] = incarnation
        if window.begin_ms <= time <= window.end_ms and not row["begins_earlier"]:
            what = "changed its registration" if is_known else "registered"
            text = f"Controller {controller} {what}"
            yield Event(time, row["from_offset"], "quorum", text, Severity.PLAIN)


def _deleted_topics(tables: ClusterTables, window: TimeWindow) -> Iterator[Event]:
    where = (field("end_reason") == IntervalEnd.TOPIC_DELETED.value) & during("to_time", window)
    rows = tables.read("partition_timeline", ("topic_name", "to_offset", "to_time"), where)
    offsets, first, counts = np.unique(
        rows.integers("to_offset"), return_index=True, return_counts=True
    )
    latest = slice(max(0, len(offsets) - EVENTS_MAX), None)
    shown = rows.at(first[latest])
    for name, time, offset, count in zip(
        shown.values("topic_name"),
        shown.times_ms("to_time").tolist(),
        offsets[latest].tolist(),
        counts[latest].tolist(),
        strict=True,
    ):
        text = f"Topic {name} was deleted with {count_text(count, 'partition')}"
        yield Event(time, offset, "topic", text, Severity.PLAIN)


def _elections(quorum: QuorumFacts, window: TimeWindow) -> Iterator[Event]:
    for epoch in quorum.epochs:
        if epoch.leader is None or epoch.begin_ms <= window.begin_ms:
            continue
        text = f"Controller {epoch.leader} became the active controller in epoch {epoch.epoch}"
        yield Event(epoch.begin_ms, epoch.offset, "quorum", text, Severity.PLAIN)


def _value_changes(values: tuple[ValueHistory, ...]) -> Iterator[Event]:
    for history in values:
        for change in history.changes:
            text = cut_text(f"{change.subject}: {change.change}", 200)
            yield Event(change.time_ms, change.offset, change.kind, text, Severity.PLAIN)
