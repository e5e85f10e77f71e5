"""The runner of a run's tasks: Spark, or anything else that keeps to this protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from kvorum.spark.pipeline.cluster_plan import FailedTask

Item = TypeVar("Item")
Result = TypeVar("Result")


class Tasks(Protocol):
    """A way to run one task for each item."""

    def run(
        self,
        task: Callable[[Item], Result | FailedTask],
        items: Sequence[Item],
        *,
        records_of: Callable[[Result], int],
        show: Callable[[int, int], None],
    ) -> list[Result]:
        """Return the result of `task` for each item, in their order.

        `show` gets the number of tasks that are done and of their records. Raises `PipelineError`
        when a task has failed; the others are given up.
        """
        ...
