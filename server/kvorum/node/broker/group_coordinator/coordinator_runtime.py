"""The coordinators of this broker, by partition of ``__consumer_offsets`` (CoordinatorRuntime)."""

import logging
import uuid
from collections.abc import Callable, Iterator
from random import Random
from typing import Final, TypeAlias, TypeVar

from kvorum.broker.coordinators import (
    NO_LEADER_EPOCH,
    CoordinatorChange,
    coordinator_elections,
    deleted_topics,
)
from kvorum.coordinator.append_errors import append_error_to_response_error
from kvorum.coordinator.coordinator_partition import coordinator_partition
from kvorum.groups.promises import JoinPromise, SyncPromise
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.broker.group_coordinator.coordinator_context import (
    CoordinatorContext,
    CoordinatorState,
    Then,
    WriteOperation,
)
from kvorum.node.broker.group_coordinator.coordinator_partition_writer import (
    OUTSIDE,
    CoordinatorPartitionWriter,
    TransactionWrite,
)
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.config import GroupSettings
from kvorum.node.event_loop import Runtime
from kvorum.wire.error_codes import ErrorCode

Response = TypeVar("Response")
ErrorMapping: TypeAlias = Callable[[ErrorCode], ErrorCode]
_UUID_BYTES: Final = 16
_RANDOM_UUID: Final = 4
_log = logging.getLogger(__name__)


class CoordinatorRuntime:
    """Has a coordinator for each partition that this broker leads, as the image changes.

    An operation is for the coordinator of a group's partition.
    """

    def __init__(
        self,
        settings: GroupSettings,
        replicas: ReplicaManager,
        *,
        broker_id: int,
        runtime: Runtime,
        random: Random,
    ) -> None:
        self._settings = settings
        self._replicas = replicas
        self._broker_id = broker_id
        self._runtime = runtime
        self._random = random
        self._contexts: dict[int, CoordinatorContext] = {}
        self._partition_count: int | None = None
        self._is_active = True

    def demand_active(self) -> None:
        """Raise RequestError after `close`."""
        if not self._is_active:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def partition_for(self, group_id: str) -> int:
        """Return the partition that coordinates a group; raises RequestError if unknown yet."""
        self.demand_active()
        if self._partition_count is None:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return coordinator_partition(group_id, self._partition_count)

    def context_for(self, group_id: str) -> CoordinatorContext:
        """Return the coordinator of a group.

        Raises RequestError on another broker, and for a group of another protocol.
        """
        context = self.context(self.partition_for(group_id))
        if context.active_shard is not None:
            context.active_shard.state.demand_classic(group_id)
        return context

    def context(self, partition: int) -> CoordinatorContext:
        """Return a coordinator; raises RequestError where this broker has none."""
        self.demand_active()
        found = self._contexts.get(partition)
        if found is None:
            raise RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)
        return found

    def coordinates(self, partition: int) -> bool:
        """Return whether this broker has a partition's coordinator, which may be loading."""
        return partition in self._contexts

    def contexts(self) -> Iterator[CoordinatorContext]:
        """Yield every coordinator of this broker."""
        return iter(tuple(self._contexts.values()))

    def active_shards(self) -> Iterator[GroupCoordinatorShard]:
        """Yield the shards that are loaded; to be read only."""
        for context in self.contexts():
            if context.active_shard is not None:
                yield context.active_shard

    def write(
        self,
        group_id: str,
        decide: WriteOperation[Response],
        then: Then[Response],
        mapping: ErrorMapping = append_error_to_response_error,
        transaction: TransactionWrite = OUTSIDE,
    ) -> None:
        """Do an operation; call back with its response when everything written is committed.

        An error of the log, which is called back or raised, is one that `mapping` returns for it.
        """
        _write(self.context_for(group_id), decide, then, mapping, transaction)

    def write_to_partition(
        self, partition: int, decide: WriteOperation[Response], then: Then[Response]
    ) -> None:
        """Do an operation on several groups of a partition, whatever their protocols are."""
        context = self.context(partition)
        _write(context, decide, then, append_error_to_response_error, OUTSIDE)

    def write_promised(
        self,
        group_id: str,
        promise: JoinPromise | SyncPromise,
        decide: WriteOperation[None],
        refuse: Callable[[RequestError], None],
    ) -> None:
        """Do an operation that may keep its promise later; refuse one that fails before.

        A response may leave before its records are committed: their fate matters no more then.
        """

        def written(result: RequestError | None) -> None:
            if result is not None and not promise.is_kept:
                promise.is_kept = True
                refuse(_mapped(result, append_error_to_response_error))

        try:
            self.context_for(group_id).write(decide, written)
        except RequestError as error:
            written(error)

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        """Follow a change of the image that the partitions have followed already."""
        if self._partition_count is None:
            # As in Kafka, the count of this moment stays in force as long as the broker runs.
            topic = after.topics.by_name(GROUP_METADATA_TOPIC)
            count = self._settings.topic.partition_count if topic is None else len(topic.partitions)
            self._partition_count = count
        if not self._is_active:
            return
        changes = coordinator_elections(
            before.topics, after.topics, GROUP_METADATA_TOPIC, self._broker_id
        )
        for change in changes.resigned:
            self._resign(change)
        for change in changes.elected:
            self._elect(change)
        gone = deleted_topics(before.topics, after.topics)
        if gone:
            for context in self.contexts():
                context.delete_topics(gone)

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        self._is_active = False
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
        context = self._contexts[change.partition] = CoordinatorContext(
            partition,
            change.leader_epoch,
            self._new_shard,
            self._runtime,
            writer=CoordinatorPartitionWriter(
                partition, self._runtime, self._settings.topic.compression
            ),
            commit_timeout_ms=self._settings.commit_timeout_ms,
        )
        context.load()

    def _new_shard(self) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(self._settings.coordinator, self._new_uuid)

    def _new_uuid(self) -> str:
        return str(uuid.UUID(bytes=self._random.randbytes(_UUID_BYTES), version=_RANDOM_UUID))

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


def _write(
    context: CoordinatorContext,
    decide: WriteOperation[Response],
    then: Then[Response],
    mapping: ErrorMapping,
    transaction: TransactionWrite,
) -> None:
    def written(result: Response | RequestError | None) -> None:
        assert result is not None
        then(_mapped(result, mapping) if isinstance(result, RequestError) else result)

    try:
        context.write(decide, written, transaction)
    except RequestError as error:
        raise _mapped(error, mapping) from error


def _mapped(error: RequestError, mapping: ErrorMapping) -> RequestError:
    code = mapping(error.code)
    return error if code is error.code else RequestError.with_default_message(code)
