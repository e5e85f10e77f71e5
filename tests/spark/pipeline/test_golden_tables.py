"""The tables of logs that real Kafka wrote, against the fold of their records."""

import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.pipeline.runs import rows_of, run_here
from tests.spark.pipeline.story_logs import Story
from tests.support.golden_data import METADATA_NODES
from tests.support.page_blocks import page_block
from tests.support.spark.small_logs import begun_history, directory_records

from kvorum.cli import main
from kvorum.history import HISTORY_TABLES, STATE_TABLES
from kvorum.spark.arrow_schemas import record_batch
from kvorum.spark.pipeline.request import TableFormat
from kvorum.spark.report.tables_directory import TablesDirectory
from kvorum.spark.report.written_report import write_report

CLUSTERS = ("dynamic-4.3.1", "ladder-4.3.1", "static-3.9.1")


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    for row in rows:
        for column in ("cluster_id", "day"):
            row.pop(column, None)
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def expected_rows(directory: Path) -> dict[str, list[str]]:
    """Fold a log with the code that the tables' definitions are tested with."""
    records = directory_records(directory)
    history = begun_history(directory, records[0].offset)
    rows = [*history.add_all(records), *history.open_rows(), *history.end_state()]
    tables: dict[str, Any] = {**HISTORY_TABLES, **STATE_TABLES}
    return {
        table: comparable(
            record_batch(kind, [row for row in rows if isinstance(row, kind)]).to_pylist()
        )
        for table, kind in tables.items()
    }


@pytest.mark.parametrize("node", METADATA_NODES)
def test_the_tables_are_those_of_the_fold(golden_sets: Path, tmp_path: Path, node: str) -> None:
    run_here(golden_sets / node, tmp_path)
    expected = expected_rows(golden_sets / node / "__cluster_metadata-0")
    for table, rows in expected.items():
        assert comparable(rows_of(tmp_path, table)) == rows, table


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_replicas_of_a_real_cluster_have_not_diverged(
    golden_sets: Path, tmp_path: Path, cluster: str
) -> None:
    source = golden_sets / cluster / "metadata"
    report = run_here(source, tmp_path)
    assert (report.cluster_count, report.changed_count) == (1, 1)
    assert [row for row in rows_of(tmp_path, "replica_divergence") if row["is_divergence"]] == []
    records = rows_of(tmp_path, "records")
    of_log = [row["offset"] for row in records if row["file_kind"] == "segment"]
    assert len(of_log) == len(set(of_log))
    assert sorted(of_log) == list(range(min(of_log), max(of_log) + 1))


def test_two_quorums_that_share_an_id_have_diverged_from_the_first_batch_on(
    golden_sets: Path, tmp_path: Path
) -> None:
    run_here(golden_sets / "standalone-4.3.1" / "metadata", tmp_path)
    rows = rows_of(tmp_path, "replica_divergence")
    found = [(row["node_id"], row["kind"], row["from_offset"], row["to_offset"]) for row in rows]
    assert sorted(found, key=lambda each: each[2]) == [
        (11, "other_content", 0, 16),
        (11, "beyond", 16, 67),
    ]
    # The log of the higher epoch counts, though it is shorter.
    assert {row["node_id"] for row in rows_of(tmp_path, "records")} == {12}


def arguments(command: str, verb: str) -> list[str]:
    words = shlex.split(command)
    assert words[:2] == ["kvorum", verb]
    return words[2:]


@pytest.mark.slow
def test_the_worked_example_shows_what_it_says(
    golden_sets: Path,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "golden").symlink_to(golden_sets)
    pipeline = page_block("docs/spark/README.md", "sh", "--input golden/")
    program = page_block("docs/spark/README.md", "python", "o.condition = 'offline'")
    shown = page_block("docs/spark/README.md", "text", "longest_s")
    report = page_block("docs/spark/README.md", "sh", "kvorum report")
    given = arguments(pipeline, "pipeline")
    assert given[::2] == ["--input", "--output"]
    run_here(Path(given[1]), given[3])
    # Spark's own directory is another one than that of this process.
    program = program.replace('parquet(f"', f'parquet(f"{tmp_path}/')
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    capsys.readouterr()
    runpy.run_path("program.py", init_globals={"spark": spark})
    assert capsys.readouterr().out.strip() == shown.strip()
    assert main(["report", *arguments(report, "report")]) == 0
    assert (tmp_path / "report" / "index.html").is_file()


TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?")


@pytest.mark.slow
def test_the_report_is_that_of_parquet_tables(story: Story, tmp_path: Path) -> None:
    pages: list[dict[str, str]] = []
    for table_format in TableFormat:
        source = story.write(tmp_path / "in", end=len(story.batches) // 2)
        output = tmp_path / table_format
        run_here(source, output, table_format=table_format)
        run_here(story.write(tmp_path / "in"), output, table_format=table_format)
        written = write_report(TablesDirectory(output), output / "pages")
        # A page says when the last run was.
        pages.append({one.name: TIME.sub("", one.read_text("utf-8")) for one in written})
    assert all(each == pages[0] for each in pages[1:])
    assert len(pages[0]) == 2
