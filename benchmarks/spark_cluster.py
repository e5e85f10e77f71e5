"""`kvorum pipeline` on a standalone cluster of Spark: two workers against one, and without Spark.

A worker has one core. The driver runs on the same machine, so a machine with two cores cannot do
twice the work in the same time. What the machine itself allows is a row of its own: the tasks of
the pipeline in two processes against one, without Spark. All times are by the clock.
"""

import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.fleet.cluster_log import CLUSTERS, write_fleet
from benchmarks.report import Row
from tests.support.spark.spark_cluster import SparkCluster, run_driver

from kvorum.spark.errors import PipelineError
from kvorum.spark.pipeline.cluster_plan import FailedTask, Item, Result
from kvorum.spark.pipeline.progress import Console
from kvorum.spark.pipeline.request import PipelineRequest
from kvorum.spark.pipeline.run import run_pipeline
from kvorum.spark.worker_process import rare_collections

RUNS: Final = 3
WORKERS: Final = 2
RUN_TIMEOUT_S: Final = 3600


class ProcessTasks:
    """Tasks in processes of this machine, without Spark."""

    def __init__(self, count: int) -> None:
        self._count = count

    def run(
        self,
        task: Callable[[Item], Result | FailedTask],
        items: Sequence[Item],
        what: str,
        progress: Console,
    ) -> list[Result]:
        results: list[Result] = []
        with ProcessPoolExecutor(self._count, get_context("spawn")) as pool:
            for result in pool.map(partial(_as_in_spark, task), items):
                if isinstance(result, FailedTask):
                    raise PipelineError(result.reason)
                results.append(result)
                records = sum(each.record_count for each in results)
                progress.show(what, done=len(results), total=len(items), records=records)
        return results


def _as_in_spark(task: Callable[[Item], Result | FailedTask], item: Item) -> Result | FailedTask:
    with rare_collections():
        return task(item)


def rows(*, records: int) -> list[Row]:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write_fleet(root / "fleet", records=records)
        with_spark = _medians(lambda workers: _seconds_in_spark(root, workers), "workers")
        alone = _medians(lambda workers: _seconds_alone(root, workers), "processes without Spark")
    what = f"kvorum pipeline, {records:,} records of {CLUSTERS} clusters"
    return [
        Row(f"{what}, on {WORKERS} workers of Spark", "on one worker", *with_spark, "s"),
        Row(f"{what}, in {WORKERS} processes without Spark", "in one process", *alone, "s"),
    ]


def _medians(seconds: Callable[[int], float], what: str) -> tuple[float, float]:
    """Return how long two take and how long one takes, in turns."""
    samples: list[tuple[float, float]] = []
    for _ in range(RUNS):
        two, one = seconds(WORKERS), seconds(1)
        print(f"{what}: {WORKERS} take {two:.1f} s, one takes {one:.1f} s", file=sys.stderr)
        samples.append((two, one))
    two, one = (statistics.median(values) for values in zip(*samples, strict=True))
    return two, one


def _seconds_in_spark(root: Path, workers: int) -> float:
    """Run the pipeline as a process of its own, on a cluster that is there already."""
    folder = root / "cluster"
    folder.mkdir()
    command = [sys.executable, "-m", "kvorum.cli", "pipeline", "--input", str(root / "fleet")]
    try:
        with SparkCluster(folder, workers=workers) as cluster:
            started = time.perf_counter()
            done = run_driver(
                [*command, "--output", str(folder / "tables"), "--master", cluster.url],
                python=Path(sys.executable),
                folder=folder,
                timeout_s=RUN_TIMEOUT_S,
            )
            seconds = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
    finally:
        shutil.rmtree(folder)
    return seconds


def _seconds_alone(root: Path, processes: int) -> float:
    tables = root / "tables"
    request = PipelineRequest((str(root / "fleet"),), str(tables))
    started = time.perf_counter()
    run_pipeline(request, lambda: ProcessTasks(processes), Console(StringIO(), is_terminal=False))
    seconds = time.perf_counter() - started
    shutil.rmtree(tables)
    return seconds
