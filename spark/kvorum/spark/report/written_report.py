"""The report as files: a page for each cluster, and a page of all of them."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kvorum.spark.errors import SparkSliceError
from kvorum.spark.report.cluster_page import cluster_page
from kvorum.spark.report.cluster_report import ClusterReport, cluster_report
from kvorum.spark.report.index_page import IndexLine, index_line, index_page
from kvorum.spark.report.log_files import log_file_facts
from kvorum.spark.report.table_files import TablesError
from kvorum.spark.report.tables_directory import NothingCoveredError, TablesDirectory

INDEX: Final = "index.html"
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


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
