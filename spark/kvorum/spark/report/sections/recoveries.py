"""The slowest recoveries."""

from __future__ import annotations

from collections.abc import Iterator

from kvorum.spark.history.partition_rows import Condition
from kvorum.spark.report.availability import Incident
from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.markup import Content, Markup, element
from kvorum.spark.report.parts import (
    begin_of,
    end_of,
    incident_partitions,
    missing_replicas,
    section,
    table,
)
from kvorum.spark.report.texts import duration_text

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
                map(_row, incidents),
                caption=f"{name}: the longest intervals",
            )


def _row(incident: Incident) -> tuple[Content, ...]:
    outage = incident.longest
    return (
        incident_partitions(incident),
        begin_of(outage),
        end_of(outage),
        duration_text(outage.duration_ms),
        missing_replicas(outage),
    )
