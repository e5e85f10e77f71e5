"""The replicas of a broker, put together: their logs, what they follow, and what they send."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from kvorum.broker.fetcher.fetch_requests import (
    FetcherSettings,
    fetch_version,
    list_offsets_version,
)
from kvorum.broker.quota.replication_quota_manager import new_replication_quota_managers
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MINIMUM_METADATA_VERSION, MetadataVersion
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.broker.broker_logs import THREAD_COUNT, BrokerLogs
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.controller_reports import AssignmentsManager
from kvorum.node.broker.replica_alter_log_dirs import MoveSettings, ReplicaAlterLogDirsManager
from kvorum.node.broker.replica_fetchers import ReplicaFetcherManager
from kvorum.node.broker.replica_manager import LogDirFailureHandler, ReplicaManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.config import NodeConfig
from kvorum.node.coroutines import Wait
from kvorum.node.directories import open_log_directories
from kvorum.node.outbound.client_connection import ClientConnection, Outgoing, address_of_broker
from kvorum.node.shared_server import SharedServer
from kvorum.node.tasks import awaiting, run
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.small_files.clean_shutdown import CleanShutdown
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.primitives import Message

CONTROLLER_TIMEOUT_MS: Final = 60_000
Response = TypeVar("Response", bound=Message)


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
            log_dir_moves=ReplicaAlterLogDirsManager(
                broker, _move_settings(config), self._logs, assignments, self.quotas.alter_log_dirs
            ),
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
                outgoing=self._shared.outgoing,
            )

        return ReplicaFetcherManager(
            broker,
            config.read(FetcherSettings),
            leader_endpoint,
            self.quotas.follower,
            fetcher_count=config.replication.fetcher_count,
        )

    async def start(self, shutdowns: Sequence[CleanShutdown]) -> None:
        """Load the logs, and return once the partitions are as the published image has them.

        `shutdowns` are how the last use of each log directory ended. Raises StorageError.
        """
        directories, shared = self._shared.directories, self._shared
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
        """Close every log in good order, and mark the directories so."""
        try:
            await run(self.replicas.shutdown(broker_epoch=broker_epoch))
        finally:
            self._close()

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
        random=shared.random,
        threads=broker.runtime,
    )


def _move_settings(config: NodeConfig) -> MoveSettings:
    fetcher = config.read(FetcherSettings)
    return MoveSettings(
        directories=config.log_directories,
        cordoned=config.broker.cordoned_log_directories,
        fetch_bytes_max=fetcher.bytes_max,
        backoff_ms=fetcher.backoff_ms,
    )


class RemoteLeaderEndpoint:
    """One connection to another broker, by the listener that brokers use among themselves.

    The address is that of the latest image: a broker that starts again may have another one.
    """

    def __init__(
        self,
        leader_id: int,
        *,
        listener: str,
        client_id: str,
        timeout_ms: int,
        image: Callable[[], MetadataImage],
        outgoing: Outgoing,
    ) -> None:
        self._leader_id = leader_id
        self._listener = listener
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._image = image
        self._outgoing = outgoing
        self._connection: ClientConnection | None = None

    def connect(self) -> Wait[None]:
        """Return the wait for a connection; raises ClientConnectionError."""
        return awaiting(self._connect)

    @property
    def fetch_version(self) -> int:
        """The version of Fetch that the metadata version stands for."""
        return fetch_version(self._metadata_version)

    async def fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        """Return the response to a fetch; raises ClientConnectionError."""
        return await self._ask(request, FetchResponse, version)

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """Return offsets of the leader; raises ClientConnectionError."""
        version = list_offsets_version(self._metadata_version)
        return await self._ask(request, ListOffsetsResponse, version)

    def abort(self) -> None:
        """Close the connection; a request that is under way fails."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def close(self) -> Wait[None]:
        """Return the wait for the connection to be closed."""
        return awaiting(self._close)

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> None:
        await self._connected()

    async def _connected(self) -> ClientConnection:
        if self._connection is None or not self._connection.is_open:
            address = address_of_broker(self._image(), self._leader_id, self._listener)
            self._connection = await self._outgoing.open(
                address, client_id=self._client_id, timeout_ms=self._timeout_ms
            )
        return self._connection

    async def _ask(self, request: Message, kind: type[Response], version: int) -> Response:
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await awaiting(self._connected)
        return await connection.send(request, kind, timeout_ms=self._timeout_ms, version=version)

    @property
    def _metadata_version(self) -> MetadataVersion:
        return self._image().features.metadata_version or MINIMUM_METADATA_VERSION
