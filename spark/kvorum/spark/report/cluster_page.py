"""The page of one cluster."""

from typing import Final

from kvorum.spark.report.cluster_report import ClusterFacts, ClusterReport
from kvorum.spark.report.markup import Content, Markup, element
from kvorum.spark.report.parts import page, time_element
from kvorum.spark.report.sections.brokers import brokers, leaders
from kvorum.spark.report.sections.events import changed_last, values
from kvorum.spark.report.sections.health import files_alone, health, wrong_now
from kvorum.spark.report.sections.offline import offline, recoveries
from kvorum.spark.report.sections.quorum import quorum
from kvorum.spark.report.sections.timeline import timeline
from kvorum.spark.report.texts import duration_text

_LINKS: Final = (
    ("timeline", "Over time"),
    ("offline", "Without a leader"),
    ("recoveries", "Slowest recoveries"),
    ("leaders", "Leaders"),
    ("brokers", "Brokers"),
    ("quorum", "Quorum"),
    ("values", "Configurations and access"),
)


def cluster_page(report: ClusterReport, *, index: str | None = None) -> str:
    """Return the page of a cluster; `index` is the file name of the page of all clusters."""
    facts = report.facts
    if facts is None:
        reason = element("p", report.reason)
        return page(
            report.cluster_id, _header(report.cluster_id, index), *files_alone(report.files), reason
        )
    return page(
        report.cluster_id,
        _header(report.cluster_id, index, facts),
        health(report.files, facts),
        element("div", wrong_now(report.files, facts), changed_last(facts), class_="beside"),
        element(
            "nav",
            [element("a", name, href=f"#{id_}") for id_, name in _LINKS],
            aria_label="Sections",
        ),
        timeline(facts),
        offline(facts),
        recoveries(facts),
        leaders(facts),
        brokers(facts),
        quorum(facts, report.files),
        values(facts),
    )


def _header(cluster_id: str, index: str | None, facts: ClusterFacts | None = None) -> Markup:
    back: Content = None if index is None else element("a", "All clusters", href=index)
    return element(
        "header",
        element("p", back, " " if back else None, "Kafka cluster", class_="eyebrow"),
        element("h1", cluster_id),
        None if facts is None else _times(facts),
    )


def _times(facts: ClusterFacts) -> Markup:
    window = facts.window
    return element(
        "p",
        "State at ",
        time_element(window.end_ms),
        ". From ",
        time_element(window.begin_ms),
        f", {duration_text(window.length_ms)}. All times are in UTC.",
        class_="times",
    )
