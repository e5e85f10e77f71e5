"""The coordinators of this broker, by partition of their topic (CoordinatorRuntime)."""

import logging
from collections.abc import Callable, Iterator
from typing import Generic

from kvorum.broker.coordinators import NO_LEADER_EPOCH, CoordinatorChange, coordinator_elections
from kvorum.broker.partition import Partition
from kvorum.coordinator.coordinator_partition import coordinator_partition
from kvorum.coordinator.shard import ShardT
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.coordinator.context import CoordinatorContext, CoordinatorState
from kvorum.node.broker.coordinator.settings import CoordinatorSettings
from kvorum.node.metrics.sensors import WindowedSensor
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode

_log = logging.getLogger(__name__)


class CoordinatorRuntime(Generic[ShardT]):
    """Has a coordinator for each partition that this broker leads, as the image changes.

    `new_shard` makes the empty shard of a partition, and `find_partition` returns the partition of
    a topic's id and an index, None where this broker has none.
    """

    def __init__(
        self,
        settings: CoordinatorSettings,
        new_shard: Callable[[], ShardT],
        find_partition: Callable[[bytes, int], Partition | None],
        *,
        broker_id: int,
        runtime: Runtime,
    ) -> None:
        self._settings = settings
        self._new_shard = new_shard
        self._find_partition = find_partition
        self._broker_id = broker_id
        self._runtime = runtime
        self._contexts: dict[int, CoordinatorContext[ShardT]] = {}
        self._elected_early: dict[int, CoordinatorChange] = {}
        self._partition_count: int | None = None
        self._is_active = True
        self.load_times_ms = WindowedSensor(runtime.monotonic_ms())
        """The times that it took to load coordinators."""

    def demand_active(self) -> None:
        """Raise RequestError after `close`."""
        if not self._is_active:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def partition_for(self, key: str) -> int:
        """Return the partition that coordinates a key; raises RequestError if unknown yet."""
        self.demand_active()
        if self._partition_count is None:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return coordinator_partition(key, self._partition_count)

    def context_for(self, key: str) -> CoordinatorContext[ShardT]:
        """Return the coordinator of a key; raises RequestError where another broker has it."""
        return self.context(self.partition_for(key))

    def context(self, partition: int) -> CoordinatorContext[ShardT]:
        """Return a coordinator; raises RequestError where this broker has none."""
        self.demand_active()
        found = self._contexts.get(partition)
        if found is None:
            raise RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)
        return found

    def coordinates(self, partition: int) -> bool:
        """Return whether this broker has a partition's coordinator, which may be loading."""
        return partition in self._contexts

    def has_loaded(self, key: str) -> bool:
        """Return whether this broker has the coordinator of a key, and has loaded it."""
        try:
            context = self.context_for(key)
        except RequestError:
            return False
        return context.active_shard is not None

    def contexts(self) -> Iterator[CoordinatorContext[ShardT]]:
        """Yield every coordinator of this broker."""
        return iter(tuple(self._contexts.values()))

    def active_shards(self) -> Iterator[ShardT]:
        """Yield the shards that are loaded; to be read only."""
        for context in self.contexts():
            if context.active_shard is not None:
                yield context.active_shard

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        """Follow a change of the image that the partitions have followed already.

        The image may be the same, and a partition lead that did not lead before.
        """
        if self._partition_count is None:
            # As in Kafka, the count of this moment stays in force as long as the broker runs.
            topic = after.topics.by_name(self._settings.topic)
            count = self._settings.partition_count if topic is None else len(topic.partitions)
            self._partition_count = count
        if not self._is_active:
            return
        changes = coordinator_elections(
            before.topics, after.topics, self._settings.topic, self._broker_id
        )
        for change in changes.resigned:
            self._elected_early.pop(change.partition, None)
            self._resign(change)
        # A partition that got no descriptors leads later, without another change of the image.
        elected = self._elected_early | {one.partition: one for one in changes.elected}
        self._elected_early = {}
        for change in elected.values():
            self._elect(change)

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        self._is_active = False
        for context in self._contexts.values():
            context.unload()
        self._contexts.clear()

    def _elect(self, change: CoordinatorChange) -> None:
        """Lead, or lead on in a higher epoch, which changes nothing in the log."""
        known = self._contexts.get(change.partition)
        if known is not None and known.leader_epoch >= change.leader_epoch:
            return
        if known is not None and not self._is_loaded_again(known):
            known.leader_epoch = change.leader_epoch
            return
        partition = self._find_partition(change.topic_id, change.partition)
        if partition is None or not partition.is_leader:
            self._elected_early[change.partition] = change
            return
        if known is not None:
            _unload(known)
        context = CoordinatorContext(
            partition,
            change.leader_epoch,
            self._new_shard,
            self._runtime,
            settings=self._settings,
            load_times_ms=self.load_times_ms,
        )
        self._contexts[change.partition] = context
        context.load()

    def _is_loaded_again(self, known: CoordinatorContext[ShardT]) -> bool:
        """Return whether a coordinator begins again in a higher epoch."""
        return self._settings.loads_in_each_epoch or known.state is CoordinatorState.FAILED

    def _resign(self, change: CoordinatorChange) -> None:
        known = self._contexts.get(change.partition)
        if known is None:
            return
        if change.leader_epoch == NO_LEADER_EPOCH or known.leader_epoch < change.leader_epoch:
            del self._contexts[change.partition]
            _unload(known)


def _unload(context: CoordinatorContext[ShardT]) -> None:
    try:
        context.unload()
    except Exception:  # noqa: BLE001 - logged
        # Another coordinator takes its place all the same.
        _log.exception("An unexpected error while a coordinator was given up")
