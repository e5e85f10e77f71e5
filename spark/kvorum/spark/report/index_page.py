"""The page of all clusters: one line of health for each, the one with most trouble first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvorum.spark.history.tables import Condition
from kvorum.spark.report.charts import plot, step_area
from kvorum.spark.report.cluster_report import WORST_FIRST, ClusterFacts, ClusterReport
from kvorum.spark.report.log_files import Trouble
from kvorum.spark.report.markup import Content, Markup, element
from kvorum.spark.report.parts import note, page, status, table, time_element, trouble_class
from kvorum.spark.report.texts import count_text

_HEIGHT: Final = 22
_COLUMNS: Final = (
    *("Cluster", "State", "Files of the log", "#No leader", "#Below min ISR", "#Under-replicated"),
    *("Under-replicated over time", "#Brokers in service", "Controller", "#Partitions", "At"),
)


_WORDS: Final = {
    Trouble.CRITICAL: "critical",
    Trouble.DEGRADED: "degraded",
    Trouble.NONE: "healthy",
}


@dataclass(frozen=True, slots=True)
class IndexLine:
    """The line of a cluster, and the file name of its page."""

    order: tuple[int, ...]
    trouble: Trouble | None
    cells: tuple[Content, ...]


def index_line(report: ClusterReport, file_name: str) -> IndexLine:
    """Return a cluster's line; it is small, so that a report can be dropped for the next one."""
    link = element("a", report.cluster_id, href=file_name)
    facts = report.facts
    if facts is None:
        state: Content = status(report.trouble) if report.trouble else "no events"
        rest = ("-",) * (len(_COLUMNS) - 3)
        cells: tuple[Content, ...] = (link, state, _files(report), *rest)
        return IndexLine(report.order, report.trouble or None, cells)
    epoch = facts.quorum.current
    is_led = epoch is not None and epoch.leader is not None
    cells = (
        link,
        status(report.trouble),
        _files(report),
        *(_count(facts, condition) for condition in WORST_FIRST),
        _sparkline(facts),
        f"{len(facts.registered) - len(facts.out_of_service):,} of {len(facts.registered):,}",
        f"{epoch.leader}, epoch {epoch.epoch}" if epoch is not None and is_led else "-",
        f"{facts.leadership.partition_count:,}",
        time_element(facts.window.end_ms),
    )
    return IndexLine(report.order, report.trouble, cells)


def index_page(lines: Sequence[IndexLine]) -> str:
    """Return the page of all clusters."""
    ordered = sorted(lines, key=lambda line: line.order)
    header = element(
        "header",
        element("p", "Kafka clusters", class_="eyebrow"),
        element("h1", count_text(len(lines), "cluster")),
        element("p", _summary(lines), class_="times"),
    )
    if not lines:
        return page("All clusters", header, element("p", "The tables have no cluster yet."))
    rows = [line.cells for line in ordered]
    caption = "Clusters, the one with most trouble first"
    return page("All clusters", header, table(_COLUMNS, rows, caption=caption, class_="index"))


def _summary(lines: Sequence[IndexLine]) -> str:
    counts = Counter(line.trouble for line in lines if line.trouble is not None)
    parts = [f"{counts[each]:,} {_WORDS[each]}" for each in sorted(counts, reverse=True)]
    without = sum(line.trouble is None for line in lines)
    if without:
        parts.append(f"{without:,} without events in this time")
    return f"{', '.join(parts)}. All times are in UTC." if parts else "All times are in UTC."


def _files(report: ClusterReport) -> Markup:
    files = report.files
    parts: list[str] = []
    if files.diverged:
        parts.append(f"{len(files.diverged_replicas):,} diverged")
    if files.damages:
        parts.append(f"{len(files.damaged_paths):,} damaged")
    if not parts:
        return element("span", "-", class_="calm")
    return element("strong", ", ".join(parts), class_=trouble_class(files.trouble))


def _count(facts: ClusterFacts, condition: Condition) -> Markup:
    count = facts.open_count(condition)
    if count == 0:
        return element("span", "0", class_="calm")
    is_warning = condition is Condition.UNDER_REPLICATED
    return element("strong", f"{count:,}", class_="warning" if is_warning else "bad")


def _sparkline(facts: ClusterFacts) -> Markup:
    found = facts.availability.conditions[Condition.UNDER_REPLICATED]
    highest = int(found.highest.max(initial=0))
    area = step_area(
        found.highest, facts.window.edges_ms(), facts.window, height=_HEIGHT, highest=highest
    )
    title = f"at most {count_text(highest, 'under-replicated partition')} at one time"
    chart = plot(title, facts.window, _HEIGHT, area)
    return element("div", chart, note(f"peak {highest:,}"), class_="spark low")
