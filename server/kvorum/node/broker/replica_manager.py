"""The replicas of this broker: Kafka's ReplicaManager.

It follows the metadata image: logs are made, opened, and removed as partitions come and go. What
blocks on the disk runs in a thread, one thing at a time; appends and reads are done in the event
loop, which owns the open logs.

A partition whose leader is another broker has a fetcher (`replica_fetcher_manager.py`); changes of
the ISRs of those that this broker leads go to the controller (`alter_partition_manager.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from kvorum.broker.local_replica_changes import (
    LocalReplicaChanges,
    PartitionInfo,
    local_changes,
)
from kvorum.broker.partition import Partition, PartitionContext
from kvorum.broker.partition_leader.outcomes import Answer
from kvorum.broker.partition_leader.partition_state import IsrProposal
from kvorum.broker.partition_stats import PartitionStats
from kvorum.broker.quota.replication_quota_manager import (
    new_replication_quota_managers,
)
from kvorum.broker.topic_log_configs import min_insync_replicas, topic_log_config
from kvorum.metadata import directory_ids
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.alter_partition_manager import DefaultAlterPartitionManager
from kvorum.node.broker.assignments_manager import AssignmentsManager
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.broker.cleaner_thread import CleanerThread
from kvorum.node.broker.log_dir_failure_handler import LogDirFailureHandler
from kvorum.node.broker.log_flusher import LogFlusher
from kvorum.node.broker.log_retention import DELETION_CHECK_MS, removal_tasks
from kvorum.node.broker.replica_alter_log_dirs_manager import (
    MoveEnvironment,
    ReplicaAlterLogDirsManager,
)
from kvorum.node.broker.replica_fetcher_manager import (
    FetcherEnvironment,
    ReplicaFetcherManager,
)
from kvorum.node.broker.replica_manager_settings import ReplicaEnvironment, ReplicaManagerSettings
from kvorum.node.broker.topic_configs import TopicConfigs
from kvorum.node.errors import NodeFailedError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.tasks import cancel_and_wait
from kvorum.storage.errors import DiskError, StorageError, TooManyOpenFilesError
from kvorum.storage.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.log_directory import LogDirectory
from kvorum.storage.log_manager import LogManager
from kvorum.storage.topic_log_config import TopicLogConfig
from kvorum.storage.topic_partition import TopicPartition
from kvorum.storage.unified_log import UnifiedLog
from kvorum.wire.error_codes import ErrorCode

Result = TypeVar("Result")
ImageFollower: TypeAlias = Callable[[MetadataImage, MetadataImage], None]
"""Takes note of a change from one image to the next; it may raise nothing."""
_log = logging.getLogger(__name__)
_MS_PER_S: Final = 1000
HOSTED_AT_ONCE: Final = 16
"""How many new logs are made in one turn of the thread for disks: others wait for it meanwhile."""
REFUSED_RETRY_MS: Final = 5_000
"""The delay before a partition that got no descriptors is tried again."""


class ReplicaManager:
    """The partitions that this broker hosts, by topic id and number."""

    def __init__(self, settings: ReplicaManagerSettings, environment: ReplicaEnvironment) -> None:
        self._settings = settings
        self._loader = environment.loader
        self._clock = environment.clock
        self._random = environment.random
        self._on_failure = environment.on_failure
        self._on_directory_offline = environment.on_directory_offline
        self._directory_failures = LogDirFailureHandler()
        self.stats = PartitionStats()
        self._alter_partition = DefaultAlterPartitionManager(
            settings.broker_id,
            environment.alter_partition_channel,
            broker_epoch=environment.broker_epoch,
            clock=environment.clock,
            on_answer=self._on_altered,
        )
        self._assignments = AssignmentsManager(
            settings.broker_id,
            environment.assignments_channel,
            broker_epoch=environment.broker_epoch,
            topics=lambda: self._loader.published.topics,
            clock=environment.clock,
        )
        self.quotas = new_replication_quota_managers(
            lambda: self._loader.published.configs, settings.broker_id, settings.quotas
        )
        """The quotas of what is copied; the bounds are those of the image that is followed."""
        self._fetchers = ReplicaFetcherManager(
            settings.fetchers,
            FetcherEnvironment(
                image=lambda: self._loader.published,
                broker_epoch=environment.broker_epoch,
                clock=environment.clock,
                outgoing=environment.outgoing,
                on_failure=environment.on_failure,
                quota=self.quotas.follower,
            ),
        )
        self._flusher = LogFlusher()
        self.inspector = BatchInspector()
        self._context = PartitionContext(
            settings.broker_id,
            environment.broker_epoch,
            lambda: self._loader.published.cluster,
            self._alter_partition.submit,
            self._flusher.schedule,
            settings.lag_max_ms,
            self.stats,
        )
        self._configs = TopicConfigs(settings.broker_id, settings.texts)
        self._partitions: dict[tuple[bytes, int], Partition] = {}
        self._logs: LogManager | None = None
        # One thread, so that one thing at a time is done, and the last one ends before a shutdown.
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kvorum-logs")
        # Those that got no descriptors are tried again.
        self._refused: dict[tuple[bytes, int], TooManyOpenFilesError] = {}
        self._seen = MetadataImage()
        self._changed = asyncio.Event()
        self._is_current = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_ending, self._turn_over = False, asyncio.Event()
        self._cleaner: CleanerThread | None = None
        self._moves: ReplicaAlterLogDirsManager | None = None
        # Held while partitions come, go and change their roles, or begin to move.
        self._replica_state_change_lock = asyncio.Lock()
        self._followers: list[ImageFollower] = []

    @property
    def log_directories(self) -> tuple[LogDirectory, ...]:
        """The log directories that are online; none before `startup`."""
        return () if self._logs is None else self._logs.directories

    def log_of(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Return the current log of a partition; None where there is none."""
        return None if self._logs is None else self._logs.get_log(topic_partition)

    @property
    def failure_channel(self) -> LogDirFailureChannel:
        """Where the failures of log directories go."""
        return self._directory_failures.channel

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """Every partition that this broker hosts, those of failed directories too."""
        return tuple(self._partitions.values())

    @property
    def fetchers(self) -> ReplicaFetcherManager:
        """What fetches the partitions that other brokers lead."""
        return self._fetchers

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        """Return a partition that this broker hosts; None for any other."""
        return self._partitions.get((topic_id, index))

    async def alter_replica_log_dirs(
        self, partition_dirs: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, ErrorCode]:
        """Move replicas to other log directories, by their paths; return how each was begun."""
        codes: dict[TopicPartition, ErrorCode] = {}
        async with self._replica_state_change_lock:
            for topic_partition, path in partition_dirs.items():
                moves = self._moves
                codes[topic_partition] = (
                    ErrorCode.KAFKA_STORAGE_ERROR
                    if moves is None
                    else await moves.alter(topic_partition, path)
                )
        return codes

    @property
    def broker_id(self) -> int:
        """The id of this broker."""
        return self._settings.broker_id

    @property
    def is_current(self) -> bool:
        """Whether the partitions are as the published image has them."""
        return self._is_current.is_set()

    async def next_turn(self) -> None:
        """Wait until some partitions more are hosted, or all are, or the broker stops."""
        await self._turn_over.wait()

    def after_change(self, follower: ImageFollower) -> None:
        """Call `follower` with two images when the partitions are as the second has them."""
        self._followers.append(follower)

    async def startup(
        self, directories: list[LogDirectory], *, has_offline_log_dirs: bool = False
    ) -> None:
        """Load the logs of the partitions that the published image has, and follow that image.

        `has_offline_log_dirs` says that the configuration has more directories.
        Raises StorageError if a log cannot be opened.
        """
        image = self._loader.published
        logs = LogManager(
            directories,
            settings=self._settings.logs,
            config_of=self._config_of,
            random=self._random,
            has_offline_log_dirs=has_offline_log_dirs,
        )
        self._logs = logs
        broker_id = self._settings.broker_id
        hosted = _replicas(image.topics, broker_id)
        ids = {key: info.topic_id for key, info in hosted.items()}
        places = {key: info.registration.directory(broker_id) for key, info in hosted.items()}
        await self._on_disk(
            lambda: logs.startup(
                ids.get,
                now_ms=self._clock.wall_ms(),
                assigned=places.get,
                is_fetchable=lambda key: hosted[key].is_fetchable(broker_id),
            )
        )
        self._moves = self._new_moves(logs)
        await self._apply(image)
        self._is_current.set()
        self._loader.subscribe(self._on_image)
        self._on_image(self._loader.published)
        self._tasks = [
            asyncio.create_task(self._follow_images()),
            asyncio.create_task(
                self._repeat(
                    logs.checkpoint_high_watermarks, self._settings.high_watermark_checkpoint_ms
                )
            ),
            asyncio.create_task(
                self._repeat(
                    logs.checkpoint_recovery_points, self._settings.recovery_point_checkpoint_ms
                )
            ),
            asyncio.create_task(
                self._repeat(
                    lambda: logs.delete_logs(now_ms=self._clock.wall_ms()), DELETION_CHECK_MS
                )
            ),
            *removal_tasks(
                self._online, self._clock, retention_check_ms=self._settings.retention_check_ms
            ),
            asyncio.create_task(self._shrink_isrs()),
            asyncio.create_task(self._send(self._alter_partition.run)),
            asyncio.create_task(self._send(self._assignments.run)),
            asyncio.create_task(self._handle_directory_failures()),
        ]
        if self._settings.cleaner is not None:
            self._cleaner = CleanerThread(
                self._settings.cleaner,
                logs.directories,
                self._clock,
                is_moving=lambda partition: logs.future_log(partition) is not None,
            )

    def _new_moves(self, logs: LogManager) -> ReplicaAlterLogDirsManager:
        return ReplicaAlterLogDirsManager(
            self._settings.moves,
            MoveEnvironment(
                logs=logs,
                assignments=self._assignments,
                clock=self._clock,
                on_disk=self._on_disk,
                partition_of=self._partition_of,
                cleaner=lambda: self._cleaner,
                on_failure=self._on_failure,
                quota=self.quotas.alter_log_dirs,
            ),
        )

    def _partition_of(self, topic_partition: TopicPartition) -> Partition | None:
        topic = self._seen.topics.by_name(topic_partition.topic)
        return None if topic is None else self.partition(topic.id, topic_partition.partition)

    async def shutdown(self, *, broker_epoch: int) -> None:
        """Close every log in good order, and mark the directories so."""
        await self._end(lambda logs: logs.shutdown(broker_epoch=broker_epoch))

    async def abort(self) -> None:
        """Close the files without writing; nothing happens after `shutdown`."""
        await self._end(lambda logs: logs.abandon())

    async def _end(self, close: Callable[[LogManager], None]) -> None:
        await self._end_tasks()
        for partition in self._partitions.values():
            partition.close()
        logs, self._logs = self._logs, None
        if logs is not None:
            await self._on_disk(lambda: close(logs))
        self._disk.shutdown(wait=False)

    async def _end_tasks(self) -> None:
        tasks, self._tasks = self._tasks, []
        # No partition is left between two steps of its change; those behind it stay as they are.
        self._is_ending = True
        self._end_turn()
        async with self._replica_state_change_lock:
            await cancel_and_wait(*tasks)
        cleaner, self._cleaner = self._cleaner, None
        if cleaner is not None:
            await cleaner.shutdown()
        moves, self._moves = self._moves, None
        if moves is not None:
            await moves.shutdown()
        await self._fetchers.shutdown()
        await self._alter_partition.close()
        await self._assignments.close()
        await self._flusher.shutdown()
        self.inspector.close()

    def _config_of(self, topic: str) -> TopicLogConfig:
        return topic_log_config(self._configs.values(topic, self._loader.published))

    def _on_image(self, image: MetadataImage) -> None:
        seen = self._seen
        if image.topics is not seen.topics or image.configs is not seen.configs:
            self._is_current.clear()
            self._changed.set()

    async def _follow_images(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._apply(self._loader.published)
            except Exception as error:
                # A broker that does not follow the metadata may write where another leads.
                self._on_failure(error)
                raise
            if not self._changed.is_set():
                self._is_current.set()
                self._end_turn()

    async def _apply(self, image: MetadataImage) -> None:
        """Follow the changes from the last image seen to this one."""
        async with self._replica_state_change_lock:
            await self._follow(image)
        if self._refused:
            count, error = len(self._refused), str(next(iter(self._refused.values())))
            _log.error(LogEvent("Partitions cannot be hosted for now", count=count, error=error))
            asyncio.get_running_loop().call_later(REFUSED_RETRY_MS / _MS_PER_S, self._changed.set)

    async def _follow(self, image: MetadataImage) -> None:
        before, self._seen = self._seen, image
        if image.configs is not before.configs:
            self.quotas.update(image.configs, self._settings.broker_id)
        again, self._refused = self._refused, {}
        changes = local_changes(before.topics, image.topics, self._settings.broker_id, again=again)
        for info in changes.deletes:
            await self._delete(info)
        if changes.deletes:
            self.stats.topics.retain(one.topic_partition.topic for one in self.partitions)
        await self._take_roles(changes)
        if self._is_ending:
            return
        self._update_configs(before, image)
        for follower in self._followers:
            follower(before, image)

    def _update_configs(self, before: MetadataImage, image: MetadataImage) -> None:
        """Give logs and leaders the settings that have changed."""
        topics = {partition.topic_partition.topic for partition in self._partitions.values()}
        changed = self._configs.changed(before, image, topics)
        for partition in self._online() if changed else ():
            values = changed.get(partition.topic_partition.topic)
            if values is not None:
                for log in partition.logs:
                    log.update_config(topic_log_config(values))
                partition.update_min_insync_replicas(min_insync_replicas(values))

    async def _take_roles(self, changes: LocalReplicaChanges) -> None:
        async for info in self._in_turns(changes.leaders, leads=True):
            self._fetchers.remove_fetcher_for_partition(info.key)
            partition = self._hosted(info)
            if partition is not None:
                values = self._configs.values(info.topic_partition.topic, self._loader.published)
                partition.make_leader(
                    info.registration,
                    min_insync_replicas=min_insync_replicas(values),
                    now_ms=self._clock.monotonic_ms(),
                )
                if self._moves is not None:
                    self._moves.resume(partition)
            # The epoch of an older log is synced here: heartbeats must not wait for all partitions.
            await asyncio.sleep(0)
        async for info in self._in_turns(changes.followers, leads=False):
            partition = self._hosted(info)
            # A fetcher goes on where only the ISR or the assignment has changed.
            if partition is not None and partition.make_follower(info.registration):
                self._fetchers.remove_fetcher_for_partition(info.key)
                if info.registration.leader in self._seen.cluster.brokers:
                    self._fetchers.add_fetcher_for_partition(partition, info.registration.leader)
            if partition is not None and self._moves is not None:
                self._moves.resume(partition)
        await self._fetchers.shutdown_idle_fetcher_threads()

    async def _in_turns(
        self, infos: Sequence[PartitionInfo], *, leads: bool
    ) -> AsyncIterator[PartitionInfo]:
        """Yield each partition once it has a log, if one can be made; none once the broker stops.

        Each partition does not take a turn of a busy loop and of the disk's thread of its own.
        """
        for first in range(0, len(infos), HOSTED_AT_ONCE):
            if self._is_ending:
                return
            turn = infos[first : first + HOSTED_AT_ONCE]
            missing = [info for info in turn if info.key not in self._partitions]
            made = partial(self._made, missing, leads=leads)
            for info, log in await self._on_disk(made) if missing else ():
                partition = Partition(info.topic_partition, info.topic_id, log, self._context)
                self._partitions[info.key] = partition
            for info in turn:
                yield info
            self._end_turn()

    def _end_turn(self) -> None:
        """Let those look again who wait for partitions."""
        over, self._turn_over = self._turn_over, asyncio.Event()
        over.set()

    def _hosted(self, info: PartitionInfo) -> Partition | None:
        """Return a partition whose log is there; None for any other."""
        known = self._partitions.get(info.key)
        if known is None or known.is_offline:
            return None
        self._report_directory(info)
        return known

    def _report_directory(self, info: PartitionInfo) -> None:
        """Report where a log is, unless the metadata log has it there (KIP-858)."""
        logs = self._logs
        assert logs is not None
        version = self._seen.features.metadata_version
        if version is None or not version.supports_directory_assignment:
            return
        directory = logs.directory_of(info.topic_partition)
        following = logs.future_directory_of(info.topic_partition)
        assigned = info.registration.directory(self._settings.broker_id)
        if following is not None and following.id == assigned:
            # The controller knows before the replica is there.
            return
        if directory is not None and directory.id != assigned:
            self._assignments.on_assignment(info.key, directory.id)

    def _made(
        self, infos: Sequence[PartitionInfo], *, leads: bool
    ) -> list[tuple[PartitionInfo, UnifiedLog]]:
        """Return partitions with their logs, in which leader epochs begin; in the disk's thread."""
        logs = self._logs
        assert logs is not None
        made: list[tuple[PartitionInfo, UnifiedLog]] = []
        for info in infos:
            assigned = info.registration.directory(self._settings.broker_id)
            try:
                log = logs.get_or_create_log(
                    info.topic_partition,
                    info.topic_id,
                    directory_id=None if assigned == directory_ids.UNASSIGNED else assigned,
                    now_ms=self._clock.wall_ms(),
                )
            except TooManyOpenFilesError as error:
                self._refused[info.key] = error
                continue
            except StorageError as error:
                _log.error(LogEvent("A partition cannot be hosted", error=str(error)))
                continue
            if leads:
                # Synced here, not in the event loop. A log that fails at this fails there again.
                with suppress(StorageError):
                    log.assign_epoch_start_offset(info.registration.leader_epoch)
            made.append((info, log))
        return made

    async def _delete(self, info: PartitionInfo) -> None:
        self._fetchers.remove_fetcher_for_partition(info.key)
        if self._moves is not None:
            self._moves.stop(info.key)
        partition = self._partitions.pop(info.key, None)
        if partition is not None:
            partition.close()
        logs = self._logs
        assert logs is not None
        if self._cleaner is not None:
            await self._cleaner.abort_cleaning(info.topic_partition)
        now_ms = self._clock.wall_ms()
        try:
            await self._on_disk(lambda: logs.async_delete(info.topic_partition, now_ms=now_ms))
            if self._cleaner is not None:
                await self._cleaner.forget(info.topic_partition)
        except StorageError as error:
            _log.error(LogEvent("A deleted partition's files remain", error=str(error)))

    async def _on_disk(self, work: Callable[[], Result]) -> Result:
        """Run what may block in the thread for it, behind what was begun before."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)

    async def _shrink_isrs(self) -> None:
        """Look again and again for followers that lag (Kafka's isr-expiration)."""
        while True:
            await asyncio.sleep(self._settings.lag_max_ms / 2 / _MS_PER_S)
            for partition in self._online():
                partition.shrink_isr(self._clock.monotonic_ms())

    def _online(self) -> tuple[Partition, ...]:
        return tuple(one for one in self._partitions.values() if not one.is_offline)

    async def _handle_directory_failures(self) -> None:
        try:
            await self._directory_failures.run(self._handle_log_dir_failure)
        except Exception as error:
            self._on_failure(error)
            raise

    async def _handle_log_dir_failure(self, path: Path, error: DiskError) -> None:
        """Go on without a log directory, or end where the broker cannot do without it."""
        logs = self._logs
        assert logs is not None
        failed = next((one for one in logs.directories if one.path == path), None)
        if failed is not None:
            self._mark_offline(failed)
            await self._on_disk(lambda: logs.handle_log_dir_failure(failed))
        _log.error(
            LogEvent(
                "A log directory has failed and is offline",
                directory=str(path),
                error=str(error),
                advice="Mend the disk, or replace it and format the directory; restart the broker",
            )
        )
        if path == self._settings.metadata_directory:
            text = f"The log directory of the metadata log, {path}, has failed: {error}"
            self._on_failure(NodeFailedError(text))
        elif not logs.directories:
            text = f"All log directories have failed; the last one was {path}: {error}"
            self._on_failure(NodeFailedError(text))
        else:
            self._on_directory_offline(path)

    def _mark_offline(self, failed: LogDirectory) -> None:
        for key, partition in self._partitions.items():
            is_moving_here = partition.topic_partition in failed.future_logs
            if partition.topic_partition in failed.logs:
                self._fetchers.remove_fetcher_for_partition(key)
                partition.mark_offline()
            elif not is_moving_here:
                continue
            partition.future_log = None
            if self._moves is not None:
                self._moves.stop(key)

    async def _send(self, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        except Exception as error:
            self._on_failure(error)
            raise

    def _on_altered(self, proposal: IsrProposal, answer: Answer) -> None:
        partition = self._partitions.get(proposal.key)
        if partition is not None:
            partition.on_altered(proposal, answer, self._clock.monotonic_ms())

    async def _repeat(self, work: Callable[[], object], interval_ms: int) -> None:
        while True:
            await asyncio.sleep(interval_ms / _MS_PER_S)
            try:
                await self._on_disk(work)
            except StorageError as error:
                _log.error(LogEvent("A task of the log directories failed", error=str(error)))


def _replicas(topics: TopicsImage, broker_id: int) -> dict[TopicPartition, PartitionInfo]:
    """Return the partitions that the broker hosts, by name."""
    everything = local_changes(TopicsImage(), topics, broker_id)
    return {info.topic_partition: info for info in (*everything.leaders, *everything.followers)}
