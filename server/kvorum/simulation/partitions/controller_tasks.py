"""The tasks that an active controller does unasked, each again and again."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from kvorum.controller.api import ControllerResult, Pieces, at_once
from kvorum.controller.periodic_tasks import (
    maybe_balance_partition_leaders,
    maybe_elect_unclean_leaders,
    maybe_fence_stale_broker,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.image import MetadataImage
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.wire.primitives import Message

PeriodicTask: TypeAlias = Callable[
    [MetadataImage, ControllerRequestContext], Pieces[ControllerResult[bool]]
]
CONTROLLER_TASKS: Final[tuple[tuple[PeriodicTask, int], ...]] = (
    (maybe_fence_stale_broker, 20),
    (maybe_balance_partition_leaders, 700),
    (maybe_elect_unclean_leaders, 150),
)
"""The tasks of every cluster, with their periods in milliseconds."""


def run_task(quorum: SimulatedQuorum, task: PeriodicTask) -> None:
    """Let every controller that is active, or believes so, do a task."""

    def decide(
        image: MetadataImage, context: ControllerRequestContext
    ) -> ControllerResult[Message | None]:
        result = at_once(task(image, context))
        return ControllerResult(None, result.records, result.is_atomic)

    for node in quorum.without_brokers():
        process = node.process
        if process is not None:
            process.turn(partial(process.controller.run, decide, lambda _: None))
