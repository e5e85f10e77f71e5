"""The share partitions and share sessions of a broker (Kafka's SharePartitionManager)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvorum.broker.share_group_config_provider import ShareGroupConfigProvider
from kvorum.broker.share_partition.acknowledgement import ShareAcknowledgementBatch
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.broker.share_session.context import (
    ReadSharePartition,
    ShareFetchContext,
    acknowledge_session_update,
    new_context,
)
from kvorum.broker.share_session.session import ShareSessionKey
from kvorum.broker.share_session.session_cache import ShareSessionCache
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.api import RequestError
from kvorum.metadata.features import SHARE_VERSION_FEATURE
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.broker.dead_letter_queue.share_group_dlq_manager import ShareGroupDLQManager
from kvorum.node.broker.purgatories import DelayedOperationPurgatory
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.share_coordinator.persister import Persister
from kvorum.node.broker.share_fetch.delayed_share_fetch import DelayedShareFetch
from kvorum.node.broker.share_fetch.led_share_partition import LedSharePartition
from kvorum.node.broker.share_fetch.share_fetch import AcknowledgeResult, ShareFetch
from kvorum.node.broker.share_fetch.share_group_metrics import (
    ShareGroupFetchMetrics,
    ShareGroupMetrics,
)
from kvorum.node.broker.share_fetch.start_offset import start_offset
from kvorum.node.coroutines import Task, Wait, all_of
from kvorum.node.runtime import Runtime
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from random import Random


class SharePartitionManager:
    """Gives records out to members, and takes what they say of them.

    A share partition is loaded when it is first fetched from; it is forgotten when this broker
    leads its partition no longer, or when no member of the group has a session here any more.
    """

    def __init__(
        self,
        configs: ShareGroupConfigProvider,
        replicas: ReplicaManager,
        persister: Persister,
        inspector: BatchInspector,
        purgatory: DelayedOperationPurgatory,
        *,
        dead_letter_queue: ShareGroupDLQManager,
        runtime: Runtime,
        random: Random,
    ) -> None:
        self.configs = configs
        """The configurations of share groups."""
        self._replicas = replicas
        self._persister = persister
        self.dead_letter_queue = dead_letter_queue
        """The way of records that die, whose metrics are to be read."""
        self._inspector = inspector
        self._purgatory = purgatory
        self._runtime = runtime
        self._random = random
        self.sessions = ShareSessionCache(configs.settings.sessions_max)
        """The sessions, to be counted."""
        self.metrics = ShareGroupMetrics()
        """To be read only."""
        self._partitions: dict[SharePartitionKey, LedSharePartition] = {}

    @property
    def partitions(self) -> tuple[LedSharePartition, ...]:
        """The share partitions of this broker, to be counted."""
        return tuple(self._partitions.values())

    def close(self) -> None:
        """Give out no records any more."""
        self._forget_all()
        self.dead_letter_queue.close()

    def on_image(self, image: MetadataImage) -> None:
        """Forget everything once the cluster has no share groups any more."""
        if image.features.level(SHARE_VERSION_FEATURE) < 1:
            self._forget_all()
            self.sessions.remove_all()

    def new_context(
        self,
        key: ShareSessionKey,
        epoch: int,
        connection: DisconnectListeners | None,
        *,
        listed: Sequence[TopicIdPartition],
        forgotten: Sequence[TopicIdPartition],
        has_acknowledgements: bool,
    ) -> ShareFetchContext:
        """Return what a ShareFetch is about; raises RequestError as `context.new_context` does."""
        context = new_context(
            self.sessions,
            key,
            epoch,
            key if connection is None else connection,
            listed=listed,
            forgotten=forgotten,
            has_acknowledgements=has_acknowledgements,
        )
        if connection is not None:
            connection.add(self._on_disconnect)
        return context

    def acknowledge_session_update(self, key: ShareSessionKey, epoch: int) -> None:
        """Take a ShareAcknowledge into its session; raises RequestError."""
        acknowledge_session_update(self.sessions, key, epoch)

    async def fetch(self, fetch: ShareFetch) -> list[ReadSharePartition]:
        """Acquire records for a member; the result has the refusals too."""
        if not fetch.partitions or fetch.max_records == 0 or fetch.max_bytes == 0:
            return []
        led: dict[TopicIdPartition, LedSharePartition] = {}
        refused: dict[TopicIdPartition, RequestError] = {}
        for partition in fetch.partitions:
            try:
                found = self._led(fetch.group_id, partition)
                found.begin_initialization()
            except RequestError as error:
                refused[partition] = error
            else:
                led[partition] = found
        stats = self._replicas.topic_stats
        for topic in _topics(fetch.partitions):
            stats.on_share_fetch_request(topic)
        delayed = DelayedShareFetch(
            fetch,
            led,
            refused,
            self.metrics.groups.get(fetch.group_id, ShareGroupFetchMetrics()),
            stats=stats,
            runtime=self._runtime,
            threads=self._replicas.disk_threads,
            random=self._random,
        )
        read = await delayed.run(self._purgatory)
        for topic in _topics(refused):
            stats.on_failed_share_fetch_request(topic)
        return read

    async def acknowledge(
        self,
        key: ShareSessionKey,
        acknowledged: Mapping[TopicIdPartition, Sequence[ShareAcknowledgementBatch]],
    ) -> dict[TopicIdPartition, AcknowledgeResult]:
        """Take a member's word for records; return what became of it once that is written."""
        stats = self._replicas.topic_stats
        for topic in _topics(acknowledged):
            stats.on_share_acknowledgement_request(topic)
        results = await self._at_each(
            key.group_id,
            acknowledged,
            lambda led, partition: led.acknowledge(key.member_id, acknowledged[partition]),
        )
        failed: list[TopicIdPartition] = []
        for partition, result in results.items():
            if result.code is ErrorCode.NONE:
                self.metrics.record_acknowledgements(acknowledged[partition])
            else:
                failed.append(partition)
        for topic in _topics(failed):
            stats.on_failed_share_acknowledgement_request(topic)
        return results

    def release_session(self, key: ShareSessionKey) -> None:
        """End a member's session, and release what it still has, in the background."""
        session = self.sessions.get(key)
        if session is None:
            return
        partitions = [one.partition for one in session.partitions.values()]
        self.sessions.remove(key)
        Task(
            self._at_each(
                key.group_id,
                dict.fromkeys(partitions),
                lambda led, _: led.release_acquired_records(key.member_id),
            ),
            lambda _: None,
        )

    def on_member_leave(self, key: ShareSessionKey) -> None:
        """Release what a member has whose connection has ended."""
        self.release_session(key)

    def on_group_empty(self, group_id: str) -> None:
        """Forget the share partitions of a group without sessions on this broker."""
        for led in self.partitions:
            if led.key.group_id == group_id:
                self.forget(led)

    def settings(self, group_id: str) -> SharePartitionSettings:
        """Return what the configuration of a group says of its share partitions."""
        return self.configs.config(group_id).partition

    async def find_start(self, led: LedSharePartition) -> int:
        """Return the offset at which a group begins to read; raises as `start_offset` does."""
        return await start_offset(
            led.replica,
            self.configs.config(led.key.group_id).auto_offset_reset,
            self._inspector,
            leader_epoch=led.leader_epoch,
            disk_threads=self._replicas.disk_threads,
            wall_ms=self._runtime.wall_ms(),
        )

    def on_load_end(self, load_ms: float) -> None:
        """Count how long it took to read a state."""
        self.metrics.partition_load_times_ms.record(load_ms)

    def forget(self, led: LedSharePartition) -> None:
        """Have the next fetch begin with another share partition."""
        if self._partitions.get(led.key) is led:
            del self._partitions[led.key]
            self.metrics.remove_partition(led.key.group_id)
        led.close()

    def _on_disconnect(self, connection: DisconnectListeners) -> None:
        self.sessions.on_disconnect(connection, self)

    async def _at_each(
        self,
        group_id: str,
        partitions: Mapping[TopicIdPartition, object],
        decide: Callable[
            [LedSharePartition, TopicIdPartition], Coroutine[Wait[Any], Any, AcknowledgeResult]
        ],
    ) -> dict[TopicIdPartition, AcknowledgeResult]:
        """Decide at each share partition, and return what became of it."""
        results: dict[TopicIdPartition, AcknowledgeResult] = {}
        decided: dict[TopicIdPartition, Coroutine[Wait[Any], Any, AcknowledgeResult]] = {}
        for partition in partitions:
            key = SharePartitionKey(group_id, partition.topic_id, partition.partition)
            led = self._partitions.get(key)
            if led is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                results[partition] = AcknowledgeResult(code, code.default_message)
            else:
                decided[partition] = decide(led, partition)
        written = await all_of(self._runtime, decided.values())
        results.update(zip(decided, written, strict=True))
        return results

    def _led(self, group_id: str, partition: TopicIdPartition) -> LedSharePartition:
        """Return a share partition; raises RequestError if this broker does not lead it."""
        replica = self._replicas.partition(partition.topic_id, partition.partition)
        if replica is None:
            raise RequestError.with_default_message(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if replica.is_offline:
            raise RequestError.with_default_message(ErrorCode.KAFKA_STORAGE_ERROR)
        if not replica.is_leader:
            raise RequestError.with_default_message(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        key = SharePartitionKey(group_id, partition.topic_id, partition.partition)
        known = self._partitions.get(key)
        if known is not None and known.replica is replica and known.is_led:
            return known
        if known is not None:
            self.forget(known)
        led = LedSharePartition(
            key, replica, self, self._persister, self.dead_letter_queue, self._runtime
        )
        self._partitions[key] = led
        self.metrics.add_partition(group_id)
        return led

    def _forget_all(self) -> None:
        for led in self.partitions:
            self.forget(led)


def _topics(partitions: Iterable[TopicIdPartition]) -> set[str]:
    """Return the names of the topics of partitions, each once."""
    return {one.topic for one in partitions if one.topic is not None}
