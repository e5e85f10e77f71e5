"""Kafka's PeriodicTaskControlManager: the periodic tasks of the active controller."""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from kvorum.controller.periodic_tasks import (
    maybe_balance_partition_leaders,
    maybe_elect_unclean_leaders,
    maybe_fence_stale_broker,
    no_op,
)
from kvorum.metadata.api import RequestError
from kvorum.node.config import NodeConfig
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.coroutines import ClosableTasks, Wait, sleep
from kvorum.node.errors import NotControllerError
from kvorum.node.runtime import Runtime

FAILURE_PAUSE_MS = 300_000
"""The pause before a failed task runs again under the same leadership, as in Kafka."""
FENCING_CHECKS_PER_SESSION = 8
_log = logging.getLogger(__name__)


class PeriodicTask(NamedTuple):
    """A task that runs every `interval_ms`; it returns whether to run again at once.

    A task with `note_delay` hears by how many milliseconds each of its turns is late. It is skipped
    if that is more than an interval.
    """

    name: str
    interval_ms: float
    run: Callable[[], Coroutine[Wait[Any], Any, bool | None]]
    note_delay: Callable[[float], None] | None = None


class PeriodicTaskControlManager:
    """Runs each periodic task in a loop of its own until it is closed.

    `epoch` returns that of the leadership, None without one. A task that has failed pauses until
    the leadership ends: the next one begins with other state.
    """

    def __init__(
        self,
        tasks: tuple[PeriodicTask, ...],
        runtime: Runtime,
        *,
        epoch: Callable[[], int | None],
    ) -> None:
        self._tasks = tasks
        self._runtime = runtime
        self._epoch = epoch
        self._loops = ClosableTasks()

    def start(self) -> None:
        """Start the tasks; each one waits for its interval first."""
        for task in self._tasks:
            self._loops.start(self._repeat(task))

    def close(self) -> None:
        """End all tasks; raise the first unexpected error that one has ended with."""
        self._loops.close()

    async def _repeat(self, task: PeriodicTask) -> None:
        paused_until_ms = 0.0
        paused_epoch = self._epoch()
        while True:
            if not await self._has_turn(task):
                continue
            epoch = self._epoch()
            now_ms = self._runtime.monotonic_ms()
            if epoch == paused_epoch and now_ms < paused_until_ms:
                continue
            try:
                while await task.run():
                    pass
            except NotControllerError:
                continue
            except RequestError:
                _log.exception("The periodic task '%s' failed", task.name)
                paused_until_ms = now_ms + FAILURE_PAUSE_MS
                paused_epoch = epoch

    async def _has_turn(self, task: PeriodicTask) -> bool:
        """Return after an interval, False if the task leaves out its turn because that is late."""
        due_ms = self._runtime.monotonic_ms() + task.interval_ms
        await sleep(self._runtime, task.interval_ms)
        if task.note_delay is None:
            return True
        delay_ms = self._runtime.monotonic_ms() - due_ms
        task.note_delay(delay_ms)
        return delay_ms <= task.interval_ms


def controller_tasks(
    controller: QuorumController, config: NodeConfig, runtime: Runtime
) -> PeriodicTaskControlManager:
    """Return the tasks that are enabled in `config`."""

    async def write_no_op() -> None:
        await controller.run_task(lambda _image, _context: no_op())

    tasks = [
        PeriodicTask(
            "fence stale brokers",
            config.broker.session_timeout_ms / FENCING_CHECKS_PER_SESSION,
            lambda: controller.run_task(maybe_fence_stale_broker),
            note_delay=controller.leave_out_of_sessions,
        ),
        PeriodicTask(
            "elect unclean leaders",
            config.topics.unclean_election_interval_ms,
            lambda: controller.run_task(maybe_elect_unclean_leaders),
        ),
    ]
    if config.security.tokens.secret_key is not None:
        tasks.append(_expiry_task(controller, config))
    if config.metadata_log.idle_interval_ms > 0:
        interval_ms = config.metadata_log.idle_interval_ms
        tasks.append(PeriodicTask("write a no-op record", interval_ms, write_no_op))
    if config.topics.is_leader_rebalance_enabled:
        tasks.append(
            PeriodicTask(
                "elect preferred leaders",
                config.topics.leader_imbalance_check_interval_seconds * 1000,
                lambda: controller.run_task(maybe_balance_partition_leaders),
            )
        )
    return PeriodicTaskControlManager(tuple(tasks), runtime, epoch=lambda: controller.epoch)


def _expiry_task(controller: QuorumController, config: NodeConfig) -> PeriodicTask:
    # Imported here: most clusters have no delegation tokens.
    from kvorum.controller.delegation_tokens import expire_tokens  # noqa: PLC0415 - see above

    return PeriodicTask(
        "expire delegation tokens",
        config.security.tokens.expiry_check_interval_ms,
        lambda: controller.run_task(expire_tokens),
    )
