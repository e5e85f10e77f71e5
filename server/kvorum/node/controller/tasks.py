"""What the active controller does by the clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from kvorum.controller.delegation_tokens import expire_tokens
from kvorum.controller.periodic import (
    elect_preferred_in_pieces,
    elect_unclean_in_pieces,
    fence_in_pieces,
    no_op,
)
from kvorum.metadata.request_error import RequestError
from kvorum.node.config import NodeConfig
from kvorum.node.controller.shell import ControllerShell
from kvorum.node.errors import NotControllerError

FAILURE_PAUSE_SECONDS = 300.0
"""How long a task that failed is left alone, as in Kafka."""
FENCING_CHECKS_PER_SESSION = 8
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """Something to do every `interval_seconds`; it tells whether to come again at once.

    One that `needs_to_be_on_time` is left out where it comes more than an interval late.
    """

    name: str
    interval_seconds: float
    run: Callable[[], Awaitable[bool | None]]
    needs_to_be_on_time: bool = False


class ControllerTasks:
    """Runs every periodic task in a loop of its own, until it is closed."""

    def __init__(self, tasks: tuple[PeriodicTask, ...]) -> None:
        self._tasks = tasks
        self._loops: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin; each task waits for its interval first."""
        self._loops = [asyncio.create_task(_repeat(task), name=task.name) for task in self._tasks]

    async def close(self) -> None:
        """End all tasks."""
        for loop in self._loops:
            loop.cancel()
        for loop in self._loops:
            with suppress(asyncio.CancelledError):
                await loop
        self._loops = []


def controller_tasks(shell: ControllerShell, config: NodeConfig) -> ControllerTasks:
    """Return the tasks that `config` asks for."""

    async def write_no_op() -> None:
        await shell.run_task(lambda _image, _context: no_op())

    tasks = [
        PeriodicTask(
            "fence stale brokers",
            config.broker.session_timeout_ms / 1000 / FENCING_CHECKS_PER_SESSION,
            lambda: shell.run_task(fence_in_pieces),
            # While this process was busy it heard no heartbeat: the fault is its own.
            needs_to_be_on_time=True,
        ),
        PeriodicTask(
            "elect unclean leaders",
            config.topics.unclean_election_interval_ms / 1000,
            lambda: shell.run_task(elect_unclean_in_pieces),
        ),
    ]
    if config.security.tokens.secret_key is not None:
        tasks.append(
            PeriodicTask(
                "expire delegation tokens",
                config.security.tokens.expiry_check_interval_ms / 1000,
                lambda: shell.run_task(expire_tokens),
            )
        )
    if config.metadata_log.idle_interval_ms > 0:
        interval = config.metadata_log.idle_interval_ms / 1000
        tasks.append(PeriodicTask("write a no-op record", interval, write_no_op))
    if config.topics.is_leader_rebalance_enabled:
        interval = float(config.topics.leader_imbalance_check_interval_seconds)
        tasks.append(
            PeriodicTask(
                "elect preferred leaders",
                interval,
                lambda: shell.run_task(elect_preferred_in_pieces),
            )
        )
    return ControllerTasks(tuple(tasks))


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
