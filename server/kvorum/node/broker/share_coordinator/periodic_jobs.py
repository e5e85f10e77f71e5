"""The work of a share coordinator that no request asks for, while the cluster has share groups."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.context import CoordinatorContext
from kvorum.node.broker.coordinator.runtime import CoordinatorRuntime
from kvorum.node.config import ShareStateSettings
from kvorum.node.coroutines import Promise, Task, Wait, all_of, sleep
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.share_coordinator.shard import ShareCoordinatorShard
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


class PeriodicJobs:
    """Deletes records that no share partition needs, and has cold partitions written again."""

    def __init__(
        self,
        settings: ShareStateSettings,
        coordinators: CoordinatorRuntime[ShareCoordinatorShard],
        runtime: Runtime,
    ) -> None:
        self._settings = settings
        self._coordinators = coordinators
        self._runtime = runtime
        self._tasks: list[Task[None]] = []
        self._pruned_offsets: dict[CoordinatorContext[ShareCoordinatorShard], int] = {}

    @property
    def pruned_offsets(self) -> Mapping[TopicPartition, int]:
        """The offset up to which records were deleted last, of each partition where some were."""
        return {
            context.partition.topic_partition: self._pruned_offsets[context]
            for context in self._coordinators.contexts()
            if context in self._pruned_offsets
        }

    def set_enabled(self, is_enabled: bool) -> None:
        """Begin or end the jobs; the first one is due after its interval."""
        if is_enabled and not self._tasks:
            interval_ms = self._settings.coordinator.cold_partition_snapshot_interval_ms
            self._tasks = [
                Task(self._every(self._settings.prune_interval_ms, self._prune), _report),
                Task(self._every(interval_ms, self._snapshot), _report),
            ]
        elif not is_enabled:
            self.close()

    def close(self) -> None:
        """End the jobs."""
        for task in self._tasks:
            task.close()
        self._tasks = []

    async def _every(
        self, interval_ms: int, work: Callable[[], Coroutine[Wait[Any], Any, None]]
    ) -> None:
        while True:
            await sleep(self._runtime, interval_ms)
            await work()

    async def _snapshot(self) -> None:
        for context in self._coordinators.contexts():
            context.write_unasked(lambda shard, now_ms: shard.snapshot_cold_partitions(now_ms))

    async def _prune(self) -> None:
        contexts = [one for one in self._coordinators.contexts() if one.active_shard is not None]
        for context in self._pruned_offsets.keys() - set(contexts):
            del self._pruned_offsets[context]
        await all_of(self._runtime, map(self._prune_partition, contexts))

    async def _prune_partition(self, context: CoordinatorContext[ShareCoordinatorShard]) -> None:
        """Delete records once the snapshots are committed that replace them."""
        asked: Promise[int | None] = Promise(self._runtime)
        try:
            context.write(lambda shard, _: shard.last_redundant_offset(), asked.settle)
            offset = await asked.result()
        except RequestError:
            # It is loaded, led elsewhere, or its followers are late: another time.
            return
        partition = context.partition
        if offset is None or self._pruned_offsets.get(context) == offset:
            return
        try:
            partition.delete_records(offset, now_ms=self._runtime.wall_ms())
        except (LeaderRefusesError, OffsetOutOfRangeError, StorageError) as error:
            where = str(partition.topic_partition)
            _log.error(LogEvent("Records could not be deleted", partition=where, error=str(error)))
            return
        self._pruned_offsets[context] = offset


def _report(error: Exception | None) -> None:
    _log.error("A periodic job of the share coordinator has ended", exc_info=error)
