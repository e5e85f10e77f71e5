"""The coordinators of this broker, by partition of ``__consumer_offsets`` (CoordinatorRuntime)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from kvorum.broker.coordinator_elections import (
    NO_LEADER_EPOCH,
    CoordinatorChange,
    coordinator_elections,
    deleted_topics,
)
from kvorum.groups.coordinator_partition import GROUP_METADATA_TOPIC
from kvorum.groups.offsets.store import DeletedTopic
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.node.broker.group_coordinator.coordinator_context import (
    CoordinatorContext,
    CoordinatorEnvironment,
    CoordinatorState,
)
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.wire.error_codes import ErrorCode

_log = logging.getLogger(__name__)


class CoordinatorRuntime:
    """Has a coordinator for each partition that this broker leads, as the image changes."""

    def __init__(
        self, broker_id: int, replicas: ReplicaManager, environment: CoordinatorEnvironment
    ) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._environment = environment
        self._contexts: dict[int, CoordinatorContext] = {}

    def context(self, partition: int) -> CoordinatorContext:
        """Return a coordinator; raises RequestError where this broker has none."""
        found = self._contexts.get(partition)
        if found is None:
            raise RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)
        return found

    def contexts(self) -> Iterator[CoordinatorContext]:
        """Yield every coordinator of this broker."""
        return iter(tuple(self._contexts.values()))

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        """Follow a change of the image that the partitions have followed already."""
        changes = coordinator_elections(
            before.topics, after.topics, GROUP_METADATA_TOPIC, self._broker_id
        )
        for change in changes.resigned:
            self._resign(change)
        for change in changes.elected:
            self._elect(change)
        gone = [
            DeletedTopic(one.id, one.name) for one in deleted_topics(before.topics, after.topics)
        ]
        if gone:
            for context in self.contexts():
                context.delete_topics(gone)

    def close(self) -> None:
        """End every coordinator."""
        for context in self._contexts.values():
            context.unload()
        self._contexts.clear()

    def _elect(self, change: CoordinatorChange) -> None:
        """Lead; a higher epoch of a partition that is led already changes nothing in its log."""
        known = self._contexts.get(change.partition)
        if known is not None and known.leader_epoch >= change.leader_epoch:
            return
        if known is not None and known.state is not CoordinatorState.FAILED:
            known.leader_epoch = change.leader_epoch
            return
        partition = self._replicas.partition(change.topic_id, change.partition)
        if partition is None or not partition.is_leader:
            return
        context = CoordinatorContext(partition, self._environment, leader_epoch=change.leader_epoch)
        self._contexts[change.partition] = context
        context.load()

    def _resign(self, change: CoordinatorChange) -> None:
        known = self._contexts.get(change.partition)
        if known is None:
            return
        if change.leader_epoch == NO_LEADER_EPOCH or known.leader_epoch < change.leader_epoch:
            del self._contexts[change.partition]
            try:
                known.unload()
            except Exception:  # noqa: BLE001 - logged
                # The partition is led elsewhere all the same.
                _log.exception("An unexpected error while groups were given up")
