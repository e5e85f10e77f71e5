"""Runs of the pipeline without Spark, and what is in their tables."""

import json
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.dataset

from kvorum.spark.errors import PipelineError
from kvorum.spark.pipeline.cluster_plan import FailedTask, Item, Result
from kvorum.spark.pipeline.progress import Console
from kvorum.spark.pipeline.request import PipelineReport, PipelineRequest
from kvorum.spark.pipeline.run import run_pipeline
from kvorum.spark.pipeline.tables import ALL_TABLES, RUNS

DATASET: Any = pyarrow.dataset


class HereTasks:
    def run(
        self,
        task: Callable[[Item], Result | FailedTask],
        items: Sequence[Item],
        what: str,
        progress: Console,
    ) -> list[Result]:
        results: list[Result] = []
        for item in items:
            result = task(item)
            if isinstance(result, FailedTask):
                raise PipelineError(result.reason)
            results.append(result)
            records = sum(each.record_count for each in results)
            progress.show(what, done=len(results), total=len(items), records=records)
        return results


class KilledError(BaseException):
    """Ends a run at any place; nothing catches it."""


class Notes(Console):
    def __init__(self) -> None:
        super().__init__(StringIO(), is_terminal=False)
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)

    def show(self, what: str, *, done: int, total: int, records: int) -> None:
        """Keep a line without the time."""
        self.lines.append(f"{done}/{total} {what} {records}")


def run_here(
    inputs: Path | Sequence[Path], output: Path | str, progress: Notes | None = None, **options: Any
) -> PipelineReport:
    given = [inputs] if isinstance(inputs, Path) else inputs
    request = PipelineRequest(tuple(str(each) for each in given), str(output), **options)
    return run_pipeline(request, HereTasks, progress or Notes())


def rows_of(output: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table with the columns of its directories, in no order."""
    # Files of a format beside the directories of clusters are not rows.
    paths = [str(path) for path in (output / table).glob("cluster_id=*/**/*.parquet")]
    if not paths:
        return []
    dataset = DATASET.dataset(paths, format="parquet", partitioning="hive")
    rows: list[dict[str, Any]] = dataset.to_table().to_pylist()
    return rows


def content(output: Path) -> dict[str, list[str]]:
    """Return the rows of all tables as sorted text, without what differs from run to run."""
    tables = (table for table in ALL_TABLES if table != RUNS)
    return {table: comparable(table, rows_of(output, table)) for table in tables}


def comparable(table: str, rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return rows of a table as sorted text, without what differs from run to run."""
    left_out = {"run", "path"} if table == "records" else {"run"}
    return sorted(
        json.dumps({k: v for k, v in row.items() if k not in left_out}, default=str, sort_keys=True)
        for row in rows
    )


def files_of(output: Path) -> dict[str, int]:
    """Return every file of an output but its lock, with the time of its last change."""
    return {
        str(path.relative_to(output)): path.stat().st_mtime_ns
        for path in output.rglob("*")
        if path.is_file() and path.name != "_lock"
    }
