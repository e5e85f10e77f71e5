"""The latest changes."""

from __future__ import annotations

from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.events import Event, Severity
from kvorum.spark.report.markup import Markup, element
from kvorum.spark.report.parts import folded, section
from kvorum.spark.report.texts import clock_text, day_text, time_text

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
        element(
            "time",
            clock_text(event.time_ms),
            datetime=time_text(event.time_ms).replace(" ", "T") + "Z",
        ),
        element(
            "span",
            _MARKS[event.severity],
            class_=f"mark {event.severity.value}",
            aria_hidden="true",
        ),
        element("span", element("span", event.kind, class_="kind"), " ", event.text),
    )
