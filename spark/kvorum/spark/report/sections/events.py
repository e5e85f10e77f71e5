"""The latest changes, and those of configurations, ACLs, quotas, features and credentials."""

from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.events import Event, Severity
from kvorum.spark.report.markup import Markup, element, joined
from kvorum.spark.report.parts import folded, more, section, table, time_element
from kvorum.spark.report.texts import clock_text, count_text, day_text
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
