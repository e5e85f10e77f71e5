"""The brokers' sessions."""

from __future__ import annotations

from typing import Final

from kvorum.spark.report.brokers import BrokerFacts
from kvorum.spark.report.cluster_report import ClusterFacts
from kvorum.spark.report.markup import Content, Markup, element
from kvorum.spark.report.parts import more, section, table, time_element
from kvorum.spark.report.texts import duration_text

BROKERS_MAX: Final = 40


def brokers(facts: ClusterFacts) -> Markup:
    """Return one line for each broker, the one that was out of service longest first."""
    found = sorted(facts.brokers, key=lambda one: (-one.out_of_service_ms, one.broker_id))
    if not found:
        return section("brokers", "Brokers", element("p", "No broker was registered."))
    columns = (
        *("Broker", "State at the end", "Since", "#Incarnations", "#Times fenced"),
        *("#Out of service", "#Longest"),
    )
    return section(
        "brokers",
        "Brokers",
        table(columns, map(_row, found[:BROKERS_MAX]), caption="Brokers, the longest out first"),
        more(len(found) - BROKERS_MAX, "brokers"),
        lead="Out of service is fenced or in controlled shutdown, from the registration on.",
    )


def _row(broker: BrokerFacts) -> tuple[Content, ...]:
    state: Content = "in service"
    if not broker.is_in_service:
        text = "not registered" if broker.state is None else broker.state.value.replace("_", " ")
        state = element("strong", text, class_="bad")
    return (
        f"Broker {broker.broker_id}",
        state,
        time_element(broker.state_since_ms),
        f"{broker.incarnation_count:,}",
        f"{broker.fenced_count:,}",
        _length(broker.out_of_service_ms),
        _length(broker.longest_ms),
    )


def _length(length_ms: int) -> str:
    return duration_text(length_ms) if length_ms else "-"
