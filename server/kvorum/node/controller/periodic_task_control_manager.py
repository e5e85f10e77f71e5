"""Kafka's PeriodicTaskControlManager: the periodic tasks of the active controller."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kvorum.controller.periodic_tasks import (
    maybe_balance_partition_leaders,
    maybe_elect_unclean_leaders,
    maybe_fence_stale_broker,
    no_op,
)
from kvorum.metadata.api import RequestError
from kvorum.node.config import NodeConfig
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.errors import NotControllerError
from kvorum.node.tasks import cancel_and_wait, run

FAILURE_PAUSE_SECONDS = 300.0
"""The pause before a failed task runs again, as in Kafka."""
FENCING_CHECKS_PER_SESSION = 8
_log = logging.getLogger(__name__)


class PeriodicTask(NamedTuple):
    """A task that runs every `interval_seconds`; it returns whether to run again at once.

    A task that `needs_to_be_on_time` is skipped if it is more than an interval late.
    """

    name: str
    interval_seconds: float
    run: Callable[[], Awaitable[bool | None]]
    needs_to_be_on_time: bool = False


class PeriodicTaskControlManager:
    """Runs each periodic task in a loop of its own until it is closed."""

    def __init__(self, tasks: tuple[PeriodicTask, ...]) -> None:
        self._tasks = tasks
        self._loops: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the tasks; each one waits for its interval first."""
        self._loops = [asyncio.create_task(_repeat(task), name=task.name) for task in self._tasks]

    async def close(self) -> None:
        """End all tasks."""
        await cancel_and_wait(*self._loops)
        self._loops = []


def controller_tasks(
    controller: QuorumController, config: NodeConfig
) -> PeriodicTaskControlManager:
    """Return the tasks that are enabled in `config`."""

    async def write_no_op() -> None:
        await run(controller.run_task(lambda _image, _context: no_op()))

    tasks = [
        PeriodicTask(
            "fence stale brokers",
            config.broker.session_timeout_ms / 1000 / FENCING_CHECKS_PER_SESSION,
            lambda: run(controller.run_task(maybe_fence_stale_broker)),
            # A process that was busy received no heartbeats: the brokers are not to blame.
            needs_to_be_on_time=True,
        ),
        PeriodicTask(
            "elect unclean leaders",
            config.topics.unclean_election_interval_ms / 1000,
            lambda: run(controller.run_task(maybe_elect_unclean_leaders)),
        ),
    ]
    if config.security.tokens.secret_key is not None:
        tasks.append(_expiry_task(controller, config))
    if config.metadata_log.idle_interval_ms > 0:
        interval = config.metadata_log.idle_interval_ms / 1000
        tasks.append(PeriodicTask("write a no-op record", interval, write_no_op))
    if config.topics.is_leader_rebalance_enabled:
        tasks.append(
            PeriodicTask(
                "elect preferred leaders",
                float(config.topics.leader_imbalance_check_interval_seconds),
                lambda: run(controller.run_task(maybe_balance_partition_leaders)),
            )
        )
    return PeriodicTaskControlManager(tuple(tasks))


def _expiry_task(controller: QuorumController, config: NodeConfig) -> PeriodicTask:
    # Imported here: most clusters have no delegation tokens.
    from kvorum.controller.delegation_tokens import expire_tokens  # noqa: PLC0415 - see above

    return PeriodicTask(
        "expire delegation tokens",
        config.security.tokens.expiry_check_interval_ms / 1000,
        lambda: run(controller.run_task(expire_tokens)),
    )


async def _repeat(task: PeriodicTask) -> None:
    loop = asyncio.get_running_loop()
    pause = task.interval_seconds
    while True:
        due = loop.time() + pause
        await asyncio.sleep(pause)
        pause = task.interval_seconds
        if task.needs_to_be_on_time and loop.time() - due > task.interval_seconds:
            continue
        try:
            while await task.run():
                pass
        except NotControllerError:
            continue
        except RequestError:
            _log.exception("The periodic task '%s' failed", task.name)
            pause = FAILURE_PAUSE_SECONDS
