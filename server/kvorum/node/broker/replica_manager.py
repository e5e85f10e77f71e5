"""The partitions of this broker: Kafka's ReplicaManager, with its LogDirFailureHandler (KIP-112).

It does what a change of the metadata image asks for: partitions come and go, lead and follow. A
partition whose leader is another broker has a fetcher (`replica_fetchers`); changes of the ISRs of
those that this broker leads go to the controller (`controller_reports`).
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.local_replica_changes import LocalReplicaChanges, PartitionInfo, local_changes
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.isr_changes import IsrChanges
from kvorum.broker.partition_leader.leader import IsrProposal
from kvorum.broker.partition_leader.outcomes import Answer
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.broker.views.reconfiguration import FETCHER_COUNT, number_of
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.broker_logs import BrokerLogs
from kvorum.node.broker.controller_reports import AssignmentsManager, DefaultAlterPartitionManager
from kvorum.node.broker.replica_alter_log_dirs import ReplicaAlterLogDirsManager
from kvorum.node.broker.replica_fetchers import ReplicaFetcherManager
from kvorum.node.broker.stored_appends import stored
from kvorum.node.broker.this_broker import ControllerChannel, ThisBroker
from kvorum.node.coroutines import Lock, Pulse, Signal, Task, other_work, sleep
from kvorum.node.errors import NodeFailedError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager
from kvorum.storage.errors import DiskError, StorageError, TooManyOpenFilesError
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode

HOSTED_AT_ONCE: Final = 16
"""The number of logs that are made in one turn of the thread for disks: others wait meanwhile."""
_log = logging.getLogger(__name__)


class ReplicaManager:
    """The partitions that this broker hosts, by topic id and number."""

    def __init__(
        self,
        broker: ThisBroker,
        logs: BrokerLogs,
        configs: TopicConfigs,
        *,
        fetchers: ReplicaFetcherManager,
        log_dir_moves: ReplicaAlterLogDirsManager,
        assignments: AssignmentsManager,
        alter_partition_channel: ControllerChannel,
        lag_ms_max: int,
    ) -> None:
        """`lag_ms_max` is ``replica.lag.time.max.ms``."""
        self.topic_stats = BrokerTopicStats()
        self.fetchers = fetchers
        self.broker_id = broker.id
        self.disk_threads: Runtime = broker.runtime
        """The runtime whose threads read and write logs."""
        self.turns = Pulse(broker.runtime)
        """Beats when some partitions more are hosted, and when the broker stops."""
        self.refused: dict[tuple[bytes, int], TooManyOpenFilesError] = {}
        """Partitions that got no descriptors; the next change tries again."""
        self._broker = broker
        self._logs = logs
        self._configs = configs
        self._log_dir_moves = log_dir_moves
        self._assignments = assignments
        self._lag_ms_max = lag_ms_max
        self._alter_partition = DefaultAlterPartitionManager(
            broker, alter_partition_channel, self._on_altered
        )
        self.isr_changes = IsrChanges(self._alter_partition.submit)
        self._partitions: dict[tuple[bytes, int], Partition] = {}
        self._isr_expiration: Task[None] | None = None
        self._is_ending, self._is_over = False, False
        # Held while partitions come, go and change their roles, or begin to move.
        self._replica_state_change_lock = Lock(broker.runtime)

    @property
    def log_directories(self) -> tuple[LogDirectory, ...]:
        """The log directories that are online; none before `startup`."""
        return self._logs.manager.directories

    def log_of(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Return the current log of a partition; None without one."""
        return self._logs.manager.get_log(topic_partition)

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """Every partition that this broker hosts, those of failed directories too."""
        return tuple(self._partitions.values())

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        """Return a partition that this broker hosts; None for any other."""
        return self._partitions.get((topic_id, index))

    def startup(self) -> None:
        """Begin with what is done again and again; the partitions are as the image has them."""
        self._logs.begin_schedule()
        self._isr_expiration = self._broker.run(self._shrink_isrs())

    async def shutdown(self, *, broker_epoch: int) -> None:
        """Close every log in good order, and mark the directories so."""
        await self._end(lambda logs: logs.shutdown(broker_epoch=broker_epoch))

    async def abort(self) -> None:
        """Close the files without writing; nothing happens after `shutdown`."""
        await self._end(lambda logs: logs.abandon())

    async def _end(self, close: Callable[[LogManager], None]) -> None:
        # A partition is not left between two steps of its change; those after it stay as they are.
        self._is_ending = True
        self.turns.beat()
        async with self._replica_state_change_lock:
            if self._isr_expiration is not None:
                self._isr_expiration.close()
        self._log_dir_moves.shutdown()
        await self.fetchers.shutdown()
        self._alter_partition.close()
        self._assignments.close()
        for partition in self._partitions.values():
            partition.close()
        if not self._is_over:
            self._is_over = True
            await self._logs.shutdown(close)

    async def alter_replica_log_dirs(
        self, partition_dirs: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, ErrorCode]:
        """Move replicas to other log directories, by their paths; return how each was begun."""
        topics = self._broker.image().topics
        codes: dict[TopicPartition, ErrorCode] = {}
        async with self._replica_state_change_lock:
            for topic_partition, path in partition_dirs.items():
                topic = topics.by_name(topic_partition.topic)
                partition = (
                    None if topic is None else self.partition(topic.id, topic_partition.partition)
                )
                codes[topic_partition] = await self._log_dir_moves.alter(
                    topic_partition, path, partition
                )
        return codes

    async def apply_delta(self, before: MetadataImage, image: MetadataImage) -> bool:
        """Follow the changes from one image to another; return False where the broker stops."""
        async with self._replica_state_change_lock:
            if self._is_ending:
                return False
            again, self.refused = self.refused, {}
            changes = local_changes(before.topics, image.topics, self._broker.id, again=again)
            for infos in _turns(changes.deletes):
                await self._delete(infos)
                self.turns.beat()
            if changes.deletes:
                self.topic_stats.retain(one.topic_partition.topic for one in self.partitions)
            await self._resize_fetchers(before, image)
            await self._take_roles(changes, image)
            if self._is_ending:
                return False
            self._update_configs(before, image)
            return True

    async def _resize_fetchers(self, before: MetadataImage, image: MetadataImage) -> None:
        """Have as many fetchers for each leader as an image says; idle ones end later."""
        if image.configs is before.configs:
            return
        count = number_of(FETCHER_COUNT, self._configs.layers(image))
        for partition in self.fetchers.resize_thread_pool(count):
            await self._end_truncation(partition.key)
            self.fetchers.migrate(partition)
            # Heartbeats must not wait for all of them.
            await other_work(self._broker.runtime)

    def _update_configs(self, before: MetadataImage, image: MetadataImage) -> None:
        """Give logs and leaders the settings that have changed."""
        if image.configs is not before.configs:
            self._logs.reconfigure(self._configs.layers(image))
        topics = {partition.topic_partition.topic for partition in self._partitions.values()}
        changed = self._configs.changed(before, image, topics)
        for partition in self._online() if changed else ():
            values = changed.get(partition.topic_partition.topic)
            if values is not None:
                for log in partition.logs:
                    log.update_config(values.log_config())
                if partition.leader is not None:
                    partition.leader.update_min_insync_replicas(values.min_insync_replicas())

    async def _take_roles(self, changes: LocalReplicaChanges, image: MetadataImage) -> None:
        """Lead and follow as an image has it; a broker that stops does so with none more."""
        for infos in _turns(changes.leaders):
            if self._is_ending:
                return
            await self._make_partitions(infos)
            for info in infos:
                await self._end_truncation(info.key)
                self._lead(info, image)
                # Heartbeats must not wait for all of them.
                await other_work(self._broker.runtime)
            self.turns.beat()
        for infos in _turns(changes.followers):
            if self._is_ending:
                return
            await self._make_partitions(infos)
            for info in infos:
                await self._end_truncation(info.key)
                self._follow(info, image)
            self.turns.beat()
        await self.fetchers.shutdown_idle_fetcher_threads()

    async def _make_partitions(self, infos: Sequence[PartitionInfo]) -> None:
        """Host partitions that are not hosted yet, if logs can be made for them."""
        missing = [info for info in infos if info.key not in self._partitions]
        if not missing:
            return
        logs = self._logs
        for info, log in await logs.disk.in_thread(partial(logs.make_logs, missing)):
            if isinstance(log, TooManyOpenFilesError):
                self.refused[info.key] = log
            else:
                self._partitions[info.key] = Partition(
                    info.topic_partition,
                    info.topic_id,
                    log,
                    self._broker,
                    flush_log=logs.flush,
                    lag_max_ms=self._lag_ms_max,
                    topic_stats=self.topic_stats,
                    isr_changes=self.isr_changes,
                )

    async def _end_truncation(self, key: tuple[bytes, int]) -> None:
        """Wait until the log of a partition that is to change is not being truncated."""
        partition = self._partitions.get(key)
        while partition is not None and partition.log.local_log.is_truncating:
            await stored(partition.log.writes)

    def _lead(self, info: PartitionInfo, image: MetadataImage) -> None:
        self.fetchers.remove_fetcher_for_partition(info.key)
        partition = self._hosted(info, image)
        if partition is None:
            return
        values = self._configs.values(info.topic_partition.topic, self._broker.image())
        try:
            partition.make_leader(
                info.registration,
                min_insync_replicas=values.min_insync_replicas(),
                now_ms=self._broker.runtime.monotonic_ms(),
            )
        except StorageError as error:
            # As in Kafka: its log may have failed a moment before its directory counts as offline.
            _log.error(LogEvent("A partition cannot be led", error=str(error)))
            partition.mark_offline()
        else:
            self._log_dir_moves.resume(partition)

    def _follow(self, info: PartitionInfo, image: MetadataImage) -> None:
        partition = self._hosted(info, image)
        if partition is None:
            return
        # A fetcher goes on where only the ISR or the assignment has changed.
        if partition.make_follower(info.registration):
            self.fetchers.remove_fetcher_for_partition(info.key)
            if info.registration.leader in image.cluster.brokers:
                self.fetchers.add_fetcher_for_partition(partition, info.registration.leader)
        self._log_dir_moves.resume(partition)

    def _hosted(self, info: PartitionInfo, image: MetadataImage) -> Partition | None:
        """Return a partition whose log is there; None for any other."""
        known = self._partitions.get(info.key)
        if known is None or known.is_offline:
            return None
        directory = self._logs.directory_to_report(info, image)
        # Behind the report of a move this one would take its place, and the move wait for ever.
        if directory is not None and not self._log_dir_moves.has_reported(info.key):
            self._assignments.on_assignment(info.key, directory.id)
        return known

    async def _delete(self, infos: Sequence[PartitionInfo]) -> None:
        for info in infos:
            self.fetchers.remove_fetcher_for_partition(info.key)
            self._log_dir_moves.stop(info.key)
            partition = self._partitions.pop(info.key, None)
            if partition is not None:
                partition.close()
        await self._logs.delete([info.topic_partition for info in infos])

    async def _shrink_isrs(self) -> None:
        """Look again and again for followers that lag (Kafka's isr-expiration)."""
        runtime = self._broker.runtime
        while True:
            await sleep(runtime, self._lag_ms_max / 2)
            for partition in self._online():
                partition.shrink_isr(runtime.monotonic_ms())

    def _online(self) -> tuple[Partition, ...]:
        return tuple(one for one in self._partitions.values() if not one.is_offline)

    async def handle_log_dir_failure(self, path: Path) -> None:
        """Go on without a log directory, if it is online."""
        logs = self._logs
        failed = next((one for one in self.log_directories if one.path == path), None)
        if failed is not None:
            self._mark_offline(failed)
            await logs.disk.in_thread(partial(logs.manager.handle_log_dir_failure, failed))

    def _mark_offline(self, failed: LogDirectory) -> None:
        for key, partition in self._partitions.items():
            is_moving_here = partition.topic_partition in failed.future_logs
            if partition.topic_partition in failed.logs:
                self.fetchers.remove_fetcher_for_partition(key)
                partition.mark_offline()
            elif not is_moving_here:
                continue
            partition.future_replica = None
            self._log_dir_moves.stop(key)

    def _on_altered(self, proposal: IsrProposal, answer: Answer) -> None:
        partition = self._partitions.get(proposal.key)
        if partition is not None:
            partition.on_altered(proposal, answer, self._broker.runtime.monotonic_ms())


def _turns(infos: Sequence[PartitionInfo]) -> Iterator[Sequence[PartitionInfo]]:
    """Yield partitions in parts, each for one turn of a busy loop and of the disks' thread."""
    for first in range(0, len(infos), HOSTED_AT_ONCE):
        yield infos[first : first + HOSTED_AT_ONCE]


class LogDirFailureHandler:
    """Goes on without one failed directory after the other, whichever thread met the failure.

    A broker whose last directory has failed ends, as does one without that of the metadata log. Any
    other is reported to `on_directory_offline`.
    """

    def __init__(
        self,
        broker: ThisBroker,
        replicas: ReplicaManager,
        metadata_directory: Path,
        on_directory_offline: Callable[[Path], None],
    ) -> None:
        self._broker = broker
        self._replicas = replicas
        self._metadata_directory = metadata_directory
        self._on_directory_offline = on_directory_offline
        self._failed: deque[tuple[Path, DiskError]] = deque()
        self._has_failed = Signal(broker.runtime)
        self.channel = LogDirFailureChannel(self._note_in_thread)
        self._task: Task[None] | None = None

    def startup(self) -> None:
        """Handle what has failed already, and what fails from now on."""
        self._task = self._broker.run(self._run())

    def close(self) -> None:
        """Handle nothing more."""
        if self._task is not None:
            self._task.close()

    def _note_in_thread(self, directory: Path, error: DiskError) -> None:
        self._broker.runtime.call_soon_threadsafe(partial(self._note, directory, error))

    def _note(self, directory: Path, error: DiskError) -> None:
        self._failed.append((directory, error))
        self._has_failed.set()

    async def _run(self) -> None:
        while True:
            await self._has_failed.wait()
            self._has_failed.clear()
            while self._failed:
                await self._handle(*self._failed.popleft())

    async def _handle(self, path: Path, error: DiskError) -> None:
        await self._replicas.handle_log_dir_failure(path)
        _log.error(
            LogEvent(
                "A log directory has failed and is offline",
                directory=str(path),
                error=str(error),
                advice="Mend the disk, or replace it and format the directory; restart the broker",
            )
        )
        if path == self._metadata_directory:
            text = f"The log directory of the metadata log, {path}, has failed: {error}"
            self._broker.on_failure(NodeFailedError(text))
        elif not self._replicas.log_directories:
            text = f"All log directories have failed; the last one was {path}: {error}"
            self._broker.on_failure(NodeFailedError(text))
        else:
            self._on_directory_offline(path)
