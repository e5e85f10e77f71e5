"""The report as files: a page for each cluster, and a page of all of them."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvorum.history.tables import Condition
from kvorum.spark.errors import SparkSliceError
from kvorum.spark.report.charts import plot, step_area
from kvorum.spark.report.cluster_report import (
    WORST_FIRST,
    ClusterFacts,
    ClusterReport,
    cluster_report,
)
from kvorum.spark.report.log_files import Trouble, log_file_facts
from kvorum.spark.report.markup import Content, Markup, element
from kvorum.spark.report.parts import note, page, status, table, time_element, trouble_class
from kvorum.spark.report.sections.health import (
    changed_last,
    files_alone,
    health,
    offline,
    recoveries,
    values,
    wrong_now,
)
from kvorum.spark.report.sections.nodes import brokers, leaders, quorum
from kvorum.spark.report.sections.timeline import timeline
from kvorum.spark.report.table_files import TablesError
from kvorum.spark.report.tables_directory import NothingCoveredError, TablesDirectory
from kvorum.spark.report.texts import count_text, duration_text

_LINKS: Final = (
    ("timeline", "Over time"),
    ("offline", "Without a leader"),
    ("recoveries", "Slowest recoveries"),
    ("leaders", "Leaders"),
    ("brokers", "Brokers"),
    ("quorum", "Quorum"),
    ("values", "Configurations and access"),
)

_HEIGHT: Final = 22
"""The height of a small chart, in pixels."""
_COLUMNS: Final = (
    *("Cluster", "State", "Files of the log", "#No leader", "#Below min ISR", "#Under-replicated"),
    *("Under-replicated over time", "#Brokers in service", "Controller", "#Partitions", "At"),
)

_WORDS: Final = {
    Trouble.CRITICAL: "critical",
    Trouble.DEGRADED: "degraded",
    Trouble.NONE: "healthy",
}

INDEX: Final = "index.html"
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Cluster ids that may be the name of a file as they are."""


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


class OutputError(SparkSliceError):
    """A page cannot be written."""


def write_report(
    tables: TablesDirectory,
    output: Path,
    *,
    cluster_id: str | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> Iterator[Path]:
    """Write the pages of all clusters, or of one, and yield the path of each.

    An `output` that ends with .html is the page of one cluster; every other one is a directory,
    which is made if it is not there. Clusters are read one after the other. Raises `TablesError`
    where tables cannot be read or have changed meanwhile, for one page of several clusters, and for
    one page of a cluster of which the tables cover nothing of the time that is asked for;
    `OutputError` where a page cannot be written.
    """
    wanted = tables.cluster_ids if cluster_id is None else [cluster_id]
    if output.suffix == ".html":
        if len(wanted) != 1:
            raise TablesError(
                f"{output}: is one page, and the tables have {len(wanted)} clusters: name one of "
                "them, or a directory"
            )
        report = cluster_report(tables.cluster(wanted[0]), since_ms=since_ms, until_ms=until_ms)
        tables.demand_unchanged()
        yield _written(output, cluster_page(report))
        return
    lines: list[IndexLine] = []
    for each in wanted:
        of_cluster = tables.cluster(each)
        try:
            report = cluster_report(of_cluster, since_ms=since_ms, until_ms=until_ms)
        except NothingCoveredError as error:
            # Other clusters may have more to show.
            reason = str(error)
            text = f"{reason[0].upper()}{reason[1:]}."
            report = ClusterReport(each, log_file_facts(of_cluster), None, text)
        tables.demand_unchanged()
        name = page_name(each)
        yield _written(output / name, cluster_page(report, index=INDEX))
        lines.append(index_line(report, name))
    yield _written(output / INDEX, index_page(lines))


def page_name(cluster_id: str) -> str:
    """Return the file name of a cluster's page: its id, or a hash where that is not a safe name."""
    if _SAFE_NAME.fullmatch(cluster_id):
        return f"cluster-{cluster_id}.html"
    return f"cluster-{hashlib.sha256(cluster_id.encode()).hexdigest()[:16]}.html"


def _written(path: Path, text: str) -> Path:
    """Write a file by replacing it, so that a reader never sees half a page."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        return partial.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
