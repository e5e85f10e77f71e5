"""Tasks on Spark: one for each item, the first item first, with progress while they run.

Results are a few names and numbers; rows do not come through here, nor through the JVM.
"""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, NamedTuple, cast
from uuid import uuid4

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from kvorum.spark.errors import PipelineError
from kvorum.spark.java_error import JavaError
from kvorum.spark.pipeline.cluster_plan import FailedTask, Item, Result
from kvorum.spark.pipeline.progress import Console
from kvorum.spark.worker_process import prepare_for_more_tasks, rare_collections

SHOW_S: Final = 0.5


class _Done(NamedTuple):
    """Tasks that are done; `failure` is the reason of the first that failed."""

    tasks: int = 0
    records: int = 0
    failure: str | None = None


class _DoneParam(AccumulatorParam[_Done]):
    """The sum of the tasks' reports, as Spark makes it."""

    def zero(self, value: _Done) -> _Done:  # noqa: ARG002 - Spark's signature
        return _Done()

    def addInPlace(self, value1: _Done, value2: _Done) -> _Done:  # noqa: N802 - Spark's name
        return _Done(
            value1.tasks + value2.tasks,
            value1.records + value2.records,
            value1.failure or value2.failure,
        )


class SparkTasks:
    """Tasks in the executors of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def run(
        self,
        task: Callable[[Item], Result | FailedTask],
        items: Sequence[Item],
        what: str,
        progress: Console,
    ) -> list[Result]:
        """See `Tasks`."""
        context = self._context
        done = context.accumulator(_Done(), _DoneParam())

        def observed(item: Item) -> Result | FailedTask:
            prepare_for_more_tasks()
            with rare_collections():
                result = task(item)
            if isinstance(result, FailedTask):
                done.add(_Done(failure=result.reason))
            else:
                done.add(_Done(1, result.record_count))
            return result

        group = f"kvorum-{uuid4().hex}"

        def collect() -> list[Result | FailedTask]:
            context.setJobGroup(group, "kvorum pipeline", interruptOnCancel=True)
            rdd: Any = context.parallelize(items, len(items))
            return cast("list[Result | FailedTask]", rdd.map(observed).collect())

        def show() -> None:
            tasks, records, _ = done.value
            progress.show(what, done=tasks, total=len(items), records=records)

        with ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(collect)
            try:
                while not wait([future], timeout=SHOW_S).done and done.value.failure is None:
                    show()
            finally:
                if not future.done():
                    context.cancelJobGroup(group)
        show()
        return _results(future, done.value.failure)


def failure_line(text: str) -> str:
    """Return the line that says what failed, of all that Java says about a failed job.

    That is what Python raised in an executor, else what Java raised.
    """
    raised = re.findall(r"^(?:: )?([\w.]*(?:Error|Exception)\b.*)", text, re.MULTILINE)
    in_python = [line for line in raised if not line.startswith(("java.", "org."))]
    return next(iter(in_python or raised), text.strip().partition("\n")[0])


def _results(future: Future[list[Result | FailedTask]], failure: str | None) -> list[Result]:
    if failure is not None:
        raise PipelineError(failure)
    try:
        found = future.result()
    except JavaError as error:
        raise PipelineError(f"Spark: {failure_line(str(error))}") from error
    results: list[Result] = []
    for each in found:
        if isinstance(each, FailedTask):
            raise PipelineError(each.reason)
        results.append(each)
    return results
