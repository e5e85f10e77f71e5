"""The replicas of a broker, put together: their logs, what they follow, and what they send."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.quota.replication_quota_manager import new_replication_quota_managers
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.broker.broker_logs import THREAD_COUNT, BrokerLogs
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.controller_reports import AssignmentsManager
from kvorum.node.broker.cordoned_log_dirs import cordoned_log_dirs
from kvorum.node.broker.replica_alter_log_dirs import MoveSettings, ReplicaAlterLogDirsManager
from kvorum.node.broker.replica_fetchers import ReplicaFetcherManager
from kvorum.node.broker.replica_manager import LogDirFailureHandler, ReplicaManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.directories import open_log_directories
from kvorum.node.outbound.remote_leader_endpoint import RemoteLeaderEndpoint
from kvorum.node.shared_server import SharedServer
from kvorum.node.tasks import run
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.small_files.clean_shutdown import renew_clean_shutdown, take_clean_shutdown

CONTROLLER_TIMEOUT_MS: Final = 60_000


class Replication:
    """The logs, fetchers and managers of a broker's replicas, from their start to their end.

    `on_directory_offline` is called with the id of a log directory that has failed, `on_failure`
    with what ends the broker.
    """

    def __init__(
        self,
        shared: SharedServer,
        *,
        broker_epoch: Callable[[], int],
        on_directory_offline: Callable[[bytes], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        config, loader = shared.config, shared.loader
        self._shared = shared
        self._on_directory_offline = on_directory_offline
        self._runtime = AsyncioRuntime(
            shared.clock, thread_name="kvorum-logs", thread_count=THREAD_COUNT
        )
        broker = ThisBroker(
            id=config.node_id,
            epoch=broker_epoch,
            image=lambda: loader.published,
            runtime=self._runtime,
            on_failure=on_failure,
        )
        self.quotas = new_replication_quota_managers(
            lambda: loader.published.configs,
            config.node_id,
            replication=config.replication.quota_windows,
            alter_log_dirs=config.replication.alter_log_dirs_quota_windows,
        )
        """The quotas of what is copied; the bounds are those of the image that is followed."""
        configs = TopicConfigs(config.node_id, config.texts)
        self._logs = BrokerLogs(broker, _log_manager(broker, shared, configs), config.logs)
        alter_partition = shared.channel("alter-partition", timeout_ms=CONTROLLER_TIMEOUT_MS)
        directories = shared.channel("directory-assignments", timeout_ms=CONTROLLER_TIMEOUT_MS)
        self._channels = (alter_partition, directories)
        assignments = AssignmentsManager(broker, directories)
        self.replicas = ReplicaManager(
            broker,
            self._logs,
            configs,
            fetchers=self._fetchers(broker),
            log_dir_moves=self._log_dir_moves(broker, assignments),
            assignments=assignments,
            alter_partition_channel=alter_partition,
            lag_ms_max=config.replication.lag_ms_max,
        )
        self.publisher = BrokerMetadataPublisher(broker, self.replicas, self.quotas)
        self._failures = LogDirFailureHandler(
            broker,
            self.replicas,
            Path(config.metadata_log.directory),
            self._propagate_directory_failure,
        )

    def _fetchers(self, broker: ThisBroker) -> ReplicaFetcherManager:
        config = self._shared.config

        def leader_endpoint(leader_id: int, fetcher_id: int) -> RemoteLeaderEndpoint:
            return RemoteLeaderEndpoint(
                leader_id,
                listener=config.listeners.inter_broker_name,
                client_id=f"broker-{config.node_id}-fetcher-{fetcher_id}",
                timeout_ms=config.replication.socket_timeout_ms,
                image=broker.image,
                outgoing=self._shared.to_brokers,
            )

        return ReplicaFetcherManager(
            broker,
            config.read(FetcherSettings),
            leader_endpoint,
            self.quotas.follower,
            fetcher_count=config.replication.fetcher_count,
        )

    def _log_dir_moves(
        self, broker: ThisBroker, assignments: AssignmentsManager
    ) -> ReplicaAlterLogDirsManager:
        config = self._shared.config
        fetcher = config.read(FetcherSettings)
        settings = MoveSettings(
            directories=config.log_directories,
            cordoned=lambda: cordoned_log_dirs(config, broker.image()),
            fetch_bytes_max=fetcher.bytes_max,
            backoff_ms=fetcher.backoff_ms,
        )
        return ReplicaAlterLogDirsManager(
            broker, settings, self._logs, assignments, self.quotas.alter_log_dirs
        )

    async def start(self) -> None:
        """Load the logs, and return once the partitions are as the published image has them.

        Raises StorageError.
        """
        shared = self._shared
        directories = shared.directories
        # The marks are removed: after a crash from here on, no directory has a clean shutdown.
        shutdowns = [
            take_clean_shutdown(directory, shared.files)
            for directory in directories.log_directories
        ]
        online = open_log_directories(
            directories, shutdowns, shared.files, self._failures.channel, shared.open_files
        )
        is_one_missing = len(online) < len(directories.log_directories)
        await self._logs.startup(online, has_offline_log_dirs=is_one_missing)
        shared.loader.subscribe(self.publisher.on_metadata_update)
        await self.publisher.startup()
        self.replicas.startup()
        self._failures.startup()

    async def stop(self, broker_epoch: int) -> None:
        """Close every log in good order, and mark the directories so.

        `broker_epoch` is -1 where the controller has not registered this process.
        """
        try:
            await run(self.replicas.shutdown(broker_epoch=broker_epoch))
            if broker_epoch >= 0:
                self._renew_marks(broker_epoch)
        finally:
            self._close()

    def _renew_marks(self, broker_epoch: int) -> None:
        shared = self._shared
        for directory in shared.directories.log_directories:
            renew_clean_shutdown(directory, shared.files, broker_epoch=broker_epoch)

    async def abort(self) -> None:
        """Close the files without writing; nothing happens after `stop`."""
        try:
            await run(self.replicas.abort())
        finally:
            self._close()

    def _close(self) -> None:
        self._failures.close()
        for channel in self._channels:
            channel.close()
        self._runtime.close()

    def _propagate_directory_failure(self, directory: Path) -> None:
        directories = self._shared.directories
        index = directories.log_directories.index(directory)
        self._on_directory_offline(directories.log_directory_ids[index])


def _log_manager(broker: ThisBroker, shared: SharedServer, configs: TopicConfigs) -> LogManager:
    config = shared.config
    return LogManager(
        config.read(LogManagerSettings, sets_damaged_logs_aside=config.own.sets_damaged_logs_aside),
        config_of=lambda topic: configs.values(topic, broker.image()).log_config(),
        producer_expiration_ms=lambda: configs.producer_expiration_ms(broker.image()),
        random=shared.random,
        threads=broker.runtime,
        cordoned=lambda: set(map(Path, cordoned_log_dirs(config, broker.image()))),
    )
