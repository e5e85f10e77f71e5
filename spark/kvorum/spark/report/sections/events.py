"""The latest changes, partitions without a leader by day, and the slowest recoveries."""

from collections.abc import Iterator

from kvorum.spark.history.tables import Condition
from kvorum.spark.report.availability import Incident, OfflineDay
from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.events import Event, Severity
from kvorum.spark.report.markup import Content, Markup, element, joined
from kvorum.spark.report.parts import (
    begin_of,
    end_of,
    folded,
    how_ended,
    incident_partitions,
    missing_replicas,
    more,
    section,
    table,
    time_element,
    why_lost,
)
from kvorum.spark.report.texts import clock_text, count_text, day_text, duration_text
from kvorum.spark.report.value_history import ValueHistory

_SHOWN = 12
_MARKS = {Severity.BAD: "■", Severity.WARNING: "▲", Severity.GOOD: "●", Severity.PLAIN: "·"}


def changed_last(facts: ClusterFacts) -> Markup:
    """Return the latest events, latest first, by day."""
    events = facts.events
    if not events:
        return section("changed", "Changed last", element("p", "Nothing changed in this time."))
    rest = events[_SHOWN:]
    return section(
        "changed",
        "Changed last",
        *_days(events[:_SHOWN]),
        folded(f"{len(rest)} earlier", *_days(rest)) if rest else None,
    )


def _days(events: tuple[Event, ...]) -> list[Markup]:
    days: dict[str, list[Event]] = {}
    for event in events:
        days.setdefault(day_text(event.time_ms), []).append(event)
    return [
        element(
            "div",
            element("h3", day),
            element("ol", [_line(event) for event in found], class_="events"),
        )
        for day, found in days.items()
    ]


def _line(event: Event) -> Markup:
    return element(
        "li",
        time_element(event.time_ms, clock_text(event.time_ms)),
        element(
            "span",
            _MARKS[event.severity],
            class_=f"mark {event.severity.value}",
            aria_hidden="true",
        ),
        element("span", element("span", event.kind, class_="kind"), " ", event.text),
    )


def values(facts: ClusterFacts) -> Markup:
    """Return the latest changes of each kind, folded."""
    found = [_kind(each) for each in facts.values if each.count]
    content = found or [element("p", "None of them changed in this time.")]
    lead = "Values of sensitive keys, and of keys that Kafka does not define, are hidden."
    return section("values", "Configurations and access", *content, lead=lead)


def _kind(history: ValueHistory) -> Markup:
    rows = [
        (time_element(change.time_ms), change.subject, change.change, f"{change.offset:,}")
        for change in history.changes
    ]
    name = history.kind[0].upper() + history.kind[1:]
    return folded(
        joined(element("b", name), f" {count_text(history.count, 'change')}"),
        table(("Time", "Of", "Change", "#Offset"), rows, caption=f"{name}: the latest changes"),
        more(history.count - len(rows), "changes before"),
    )


def offline(facts: ClusterFacts) -> Markup:
    """Return the days on which partitions had no leader, latest first."""
    found = facts.availability.conditions[Condition.OFFLINE]
    title = "Partitions without a leader"
    if found.interval_count == 0:
        return section("offline", title, element("p", "Every partition had a leader all the time."))
    days = facts.availability.offline_days
    lead = (
        f"{count_text(found.interval_count, 'interval')} of "
        f"{count_text(found.partition_count, 'partition')}, "
        f"{duration_text(found.total_ms)} in total. Days are days of UTC."
    )
    return section(
        "offline",
        title,
        *(_day(day, is_open=index == 0) for index, day in enumerate(days)),
        more(facts.availability.more_days_count, "days before"),
        lead=lead,
    )


def _day(day: OfflineDay, *, is_open: bool) -> Markup:
    name = day_text(day.day_ms)
    summary = joined(
        element("b", name),
        f" {count_text(day.partition_count, 'partition')}, {duration_text(day.total_ms)} in total",
    )
    rows = [
        (
            outage.partition,
            begin_of(outage),
            end_of(outage),
            duration_text(outage.duration_ms),
            why_lost(outage),
            how_ended(outage),
        )
        for outage in day.outages
    ]
    columns = (
        "Partition",
        "No leader from",
        "to",
        "#Duration",
        "Why it lost its leader",
        "How it ended",
    )
    return folded(
        summary,
        table(columns, rows, caption=f"Partitions without a leader on {name}, the longest first"),
        more(day.more_count, "intervals"),
        is_open=is_open,
        id_=f"offline-{name.split()[1]}",
    )


_CONDITIONS = (
    (Condition.UNDER_MIN_ISR, "Below min ISR"),
    (Condition.UNDER_REPLICATED, "Under-replicated"),
)


def recoveries(facts: ClusterFacts) -> Markup:
    """Return the longest intervals with too few replicas in sync."""
    content = list(_tables(facts)) or [element("p", "All replicas were in sync all the time.")]
    lead = (
        "Partitions that fell behind and recovered together are one line. A replica is behind "
        "where its broker was in service all the time."
    )
    return section("recoveries", "Slowest recoveries", *content, lead=lead)


def _tables(facts: ClusterFacts) -> Iterator[Markup]:
    for condition, name in _CONDITIONS:
        incidents = facts.availability.slowest[condition]
        if incidents:
            yield element("h3", name)
            yield table(
                ("Partitions", "From", "To", "#Duration", "Missing replicas"),
                map(_recovery, incidents),
                caption=f"{name}: the longest intervals",
            )


def _recovery(incident: Incident) -> tuple[Content, ...]:
    outage = incident.longest
    return (
        incident_partitions(incident),
        begin_of(outage),
        end_of(outage),
        duration_text(outage.duration_ms),
        missing_replicas(outage),
    )
