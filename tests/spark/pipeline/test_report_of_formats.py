"""Tables of every format give the same report."""

import re
from pathlib import Path

import pytest
from tests.spark.pipeline.runs import run_here
from tests.spark.pipeline.story_logs import Story

from kvorum.spark.pipeline.request import TableFormat
from kvorum.spark.report.tables_directory import TablesDirectory
from kvorum.spark.report.written_report import write_report

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
