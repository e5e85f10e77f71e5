"""Changes of configurations, ACLs, quotas, features and credentials."""

from __future__ import annotations

from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.markup import Markup, element, joined
from kvorum.spark.report.parts import folded, more, section, table, time_element
from kvorum.spark.report.texts import count_text
from kvorum.spark.report.value_history import ValueHistory


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
