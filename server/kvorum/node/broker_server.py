"""The broker role of a node, put together: Kafka's BrokerServer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kvorum.broker.fetch_session.context import FetchManager
from kvorum.broker.lifecycle import BrokerIdentity
from kvorum.broker.quota.client_quota_manager import QuotaManagers
from kvorum.broker.replica_selector import RACK_AWARE, RackAwareReplicaSelector
from kvorum.broker.share_group_config_provider import ShareGroupConfigProvider
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.metadata.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.authorization import Authorizer
from kvorum.node.broker.auto_topic_creation_manager import AutoTopicCreationManager
from kvorum.node.broker.batch_inspector import THREAD_COUNT, BatchInspector
from kvorum.node.broker.broker_lifecycle_manager import BrokerLifecycleManager
from kvorum.node.broker.coordinator.coordinator_on_demand import CoordinatorOnDemand
from kvorum.node.broker.cordoned_log_dirs import cordoned_log_dirs
from kvorum.node.broker.ended_transactions import EndedTransactions
from kvorum.node.broker.forwarding_manager import ForwardingManager, OwnController
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.broker.producer_id_manager import ProducerIdManager
from kvorum.node.broker.purgatories import Purgatories
from kvorum.node.broker.request_handler_helper import RequestHandlerHelper
from kvorum.node.broker.transaction_verification import (
    AddPartitionsToTxnManager,
    TransactionVerification,
)
from kvorum.node.config import NodeConfig
from kvorum.node.directories import common_epoch
from kvorum.node.endpoints import advertised_endpoints
from kvorum.node.errors import NodeStartError
from kvorum.node.handlers.registry import broker_api_versions, broker_apis, forwardable_keys
from kvorum.node.on_demand import OnDemand
from kvorum.node.outbound.broker_connections import BrokerConnections
from kvorum.node.replication import Replication
from kvorum.node.services import BrokerServices, VersionRanges
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import HandlerResponse, RequestHandler, ServedApis
from kvorum.node.serving.socket_server import SocketServer
from kvorum.node.shared_server import SharedServer
from kvorum.node.tasks import run
from kvorum.storage.small_files.clean_shutdown import read_clean_shutdown
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import random_uuid

if TYPE_CHECKING:
    from kvorum.node.broker.dead_letter_queue.share_group_dlq_manager import ShareGroupDLQManager
    from kvorum.node.broker.group_coordinator.group_coordinator_service import (
        GroupCoordinatorService,
    )
    from kvorum.node.broker.group_coordinator.share_group_service import ShareGroupService
    from kvorum.node.broker.metadata_topic import MetadataTopic
    from kvorum.node.broker.share_coordinator.default_state_persister import DefaultStatePersister
    from kvorum.node.broker.share_coordinator.share_coordinator_service import (
        ShareCoordinatorService,
    )
    from kvorum.node.broker.share_fetch.share_partition_manager import SharePartitionManager
    from kvorum.node.broker.transaction_coordinator.transaction_coordinator_service import (
        TransactionCoordinatorService,
    )

FORWARDING_TIMEOUT_MS = 60_000
PRODUCER_IDS_TIMEOUT_MS = 60_000


class BrokerServer:
    """The broker role: its lifecycle manager, its listeners, its channels to the controller."""

    def __init__(
        self,
        shared: SharedServer,
        on_failure: Callable[[Exception], None],
        own_controller: OwnController | None,
    ) -> None:
        self._shared = shared
        config = shared.config
        self._forwarder = ForwardingManager(
            shared.channel("forwarding", timeout_ms=FORWARDING_TIMEOUT_MS), own_controller
        )
        self._topic_creator = AutoTopicCreationManager(
            config, self._forwarder, shared.images, shared.clock
        )
        self.lifecycle_manager = self._broker_lifecycle_manager(on_failure)
        self._replication = Replication(
            shared,
            broker_epoch=lambda: self.lifecycle_manager.epoch,
            on_directory_offline=self.lifecycle_manager.propagate_directory_failure,
            on_failure=on_failure,
        )
        self._batch_threads = AsyncioRuntime(
            shared.clock, thread_name="kvorum-batches", thread_count=THREAD_COUNT
        )
        self._inspector = BatchInspector(self._batch_threads)
        apis = broker_apis()
        self._own_broker = self._connection_to_itself()
        self._ended_transactions = EndedTransactions(shared.runtime)
        self.add_partitions_to_txn = self._add_partitions_to_txn_manager()
        """The questions of this broker's partitions to the coordinators of transactions."""
        self._transactions = TransactionVerification(
            config,
            self.add_partitions_to_txn,
            shared.loader,
            self._ended_transactions,
            shared.runtime,
        )
        self._producer_ids_channel = shared.channel(
            "producer-ids", timeout_ms=PRODUCER_IDS_TIMEOUT_MS
        )
        self._producer_ids = self._producer_id_manager()
        publisher = self._replication.publisher
        self._groups = CoordinatorOnDemand(GROUP_METADATA_TOPIC, publisher, self._group_coordinator)
        self._coordinated_transactions = CoordinatorOnDemand(
            TRANSACTION_STATE_TOPIC, publisher, self._transaction_coordinator
        )
        self._coordinated_shares = CoordinatorOnDemand(
            SHARE_GROUP_STATE_TOPIC, publisher, self._share_coordinator
        )
        self._persister = OnDemand(self._default_state_persister)
        self._purgatories = Purgatories(shared.runtime)
        self._fetched_shares = OnDemand(self._share_partition_manager)
        self._share_groups = OnDemand(self._share_group_service)
        self.services = self._broker_services(apis)
        """The parts that handlers use."""
        self._handler = self._request_handler(apis)
        self._servers = {
            listener.name: shared.server(listener, self._handler)
            for listener in config.listeners.brokers
        }

    @property
    def socket_servers(self) -> Mapping[str, SocketServer]:
        """The servers of this role's listeners, by name."""
        return self._servers

    async def start(self) -> None:
        """Register, open the logs, wait until the broker is unfenced, and accept requests."""
        await run(self.lifecycle_manager.start(self._replication.start))
        await run(self._forwarder.channel.connect())
        for name, server in self._servers.items():
            await server.start(self._shared.sockets[name])

    async def stop(self) -> None:
        """Do a controlled shutdown, close every connection, then the logs."""
        if self._shared.config.broker.is_controlled_shutdown_enabled:
            await run(self.lifecycle_manager.stop())
        await self._close_connections()
        await self._replication.stop(self.lifecycle_manager.epoch)

    def end_waits(self) -> None:
        """Have `stop` not wait, or wait no longer, for the controller."""
        self.lifecycle_manager.end_waits()

    async def abort(self) -> None:
        """Close everything at once, without asking the controller."""
        await self._close_connections()
        await self._replication.abort()

    async def _close_connections(self) -> None:
        self._topic_creator.close()
        self._share_groups.close()
        self._groups.close()
        self._coordinated_transactions.close()
        self._fetched_shares.close()
        self._persister.close()
        self._coordinated_shares.close()
        self._inspector.close()
        self.lifecycle_manager.abort()
        for server in self._servers.values():
            await server.stop()
        # Work that is under way ends at its next size check.
        self._batch_threads.when_idle(self._batch_threads.close)
        self._forwarder.channel.close()
        self.add_partitions_to_txn.close()
        self._producer_ids.close()
        self._producer_ids_channel.close()

    def _broker_lifecycle_manager(
        self, on_failure: Callable[[Exception], None]
    ) -> BrokerLifecycleManager:
        shared, config = self._shared, self._shared.config
        return BrokerLifecycleManager(
            self._identity(),
            config.broker,
            channel=shared.channel("heartbeat", timeout_ms=config.broker.heartbeat_interval_ms),
            loader=shared.loader,
            runtime=shared.runtime,
            on_failure=on_failure,
            cordoned_directories=self._cordoned_directories,
            enable_unstable_features=config.enable_unstable_feature_versions,
        )

    def _connection_to_itself(self) -> OwnBroker:
        config = self._shared.config
        return OwnBroker(
            config.node_id,
            config.listeners.inter_broker_name,
            broker_api_versions(),
            handle=self._handle,
            runtime=self._shared.runtime,
        )

    def _add_partitions_to_txn_manager(self) -> AddPartitionsToTxnManager:
        shared = self._shared
        return AddPartitionsToTxnManager(
            _broker_connections(shared, "add-partitions-to-txn"),
            self._own_broker,
            shared.config.listeners.inter_broker_name,
            image=lambda: shared.loader.published,
            runtime=shared.runtime,
        )

    def _producer_id_manager(self) -> ProducerIdManager:
        shared = self._shared
        return ProducerIdManager(
            self._producer_ids_channel,
            shared.runtime,
            broker_id=shared.config.node_id,
            broker_epoch=lambda: self.lifecycle_manager.epoch,
        )

    def _request_handler(self, apis: ServedApis[BrokerServices]) -> RequestHandler[BrokerServices]:
        shared, config = self._shared, self._shared.config
        return RequestHandler(
            apis,
            self.services,
            Authorizer(config.security.authorizer, loader=shared.loader, raft=shared.raft).access,
            clock=shared.clock,
            metrics=shared.request_metrics,
            throttle=self.services.throttling.throttle,
        )

    async def _handle(self, request: IncomingRequest[Message]) -> HandlerResponse:
        return await self._handler.handle(request)

    def _group_coordinator(self) -> GroupCoordinatorService:
        # Imported here: a broker starts sooner that has no groups yet.
        from kvorum.node.broker.group_coordinator.group_coordinator_service import (  # noqa: PLC0415 - see above
            GroupCoordinatorService,
        )

        return GroupCoordinatorService(
            self._shared.config.groups,
            self._replication.replicas,
            broker_id=self._shared.config.node_id,
            runtime=AsyncioRuntime(self._shared.clock, thread_name="kvorum-groups"),
            random=self._shared.random,
        )

    def _share_group_service(self) -> ShareGroupService:
        from kvorum.node.broker.group_coordinator.network_partition_metadata_client import (  # noqa: PLC0415 - as the group coordinator
            NetworkPartitionMetadataClient,
        )
        from kvorum.node.broker.group_coordinator.share_group_service import ShareGroupService  # noqa: PLC0415 - as the group coordinator

        shared = self._shared
        partitions = NetworkPartitionMetadataClient(
            _broker_connections(shared, "network-partition-metadata-client"),
            self._own_broker,
            shared.config.listeners.inter_broker_name,
            image=lambda: shared.loader.published,
            draw=shared.random.random,
            runtime=shared.runtime,
        )
        return ShareGroupService(
            self._groups.service, self._persister.part, partitions, runtime=shared.runtime
        )

    def _transaction_coordinator(self) -> TransactionCoordinatorService:
        from kvorum.node.broker.transaction_coordinator.transaction_coordinator_service import (  # noqa: PLC0415 - as the group coordinator
            TransactionCoordinatorService,
        )

        shared = self._shared
        return TransactionCoordinatorService(
            shared.config,
            self._replication.replicas,
            self._producer_ids,
            connections=_broker_connections(shared, "txn-marker-sender"),
            own=self._own_broker,
            ended=self._ended_transactions,
            image=lambda: shared.loader.published,
            runtime=AsyncioRuntime(shared.clock, thread_name="kvorum-transactions"),
        )

    def _share_coordinator(self) -> ShareCoordinatorService:
        from kvorum.node.broker.share_coordinator.share_coordinator_service import (  # noqa: PLC0415 - as the group coordinator
            ShareCoordinatorService,
        )

        return ShareCoordinatorService(
            self._shared.config.share_state,
            self._replication.replicas,
            runtime=AsyncioRuntime(self._shared.clock, thread_name="kvorum-shares"),
        )

    def _default_state_persister(self) -> DefaultStatePersister:
        from kvorum.node.broker.share_coordinator.default_state_persister import (  # noqa: PLC0415 - as the group coordinator
            DefaultStatePersister,
        )

        shared = self._shared
        return DefaultStatePersister(
            _broker_connections(shared, "share-state"),
            self._own_broker,
            shared.config.listeners.inter_broker_name,
            image=lambda: shared.loader.published,
            create_topic=self._topic_creator.create_internal,
            draw=shared.random.random,
            runtime=shared.runtime,
        )

    def _share_partition_manager(self) -> SharePartitionManager:
        from kvorum.node.broker.share_fetch.share_partition_manager import SharePartitionManager  # noqa: PLC0415 - as the group coordinator

        shared = self._shared
        manager = SharePartitionManager(
            ShareGroupConfigProvider(shared.config.share_fetch, lambda: shared.loader.published),
            self._replication.replicas,
            self._persister.part,
            self._inspector,
            self._purgatories.share_fetch,
            dead_letter_queue=self._share_group_dlq_manager(),
            runtime=shared.runtime,
            random=shared.random,
        )
        shared.loader.subscribe(manager.on_image)
        return manager

    def _share_group_dlq_manager(self) -> ShareGroupDLQManager:
        from kvorum.node.broker.dead_letter_queue.dead_letter_sender import DeadLetterSender  # noqa: PLC0415 - as the group coordinator
        from kvorum.node.broker.dead_letter_queue.share_group_dlq_manager import (  # noqa: PLC0415 - as the group coordinator
            ShareGroupDLQManager,
        )

        shared = self._shared
        config = shared.config
        connections = _broker_connections(shared, "share-group-dlq")
        return ShareGroupDLQManager(
            DeadLetterSender(connections, self._own_broker, shared.runtime),
            config.listeners.inter_broker_name,
            image=lambda: shared.loader.published,
            configs=TopicConfigs(config.node_id, config.texts),
            create_topic=self._topic_creator.create_dead_letter_queue,
            threads=self._replication.replicas.disk_threads,
            draw=shared.random.random,
            runtime=shared.runtime,
        )

    def _identity(self) -> BrokerIdentity:
        shared = self._shared
        directories = shared.directories
        shutdowns = [
            read_clean_shutdown(directory, shared.files)
            for directory in directories.log_directories
        ]
        return BrokerIdentity(
            node_id=shared.config.node_id,
            cluster_id=directories.cluster_id,
            incarnation_id=random_uuid(shared.random),
            listeners=advertised_endpoints(
                shared.config.listeners.advertised_brokers, shared.sockets
            ),
            rack=shared.config.broker.rack,
            directory_ids=directories.log_directory_ids,
            previous_epoch=common_epoch(shutdowns),
        )

    def _cordoned_directories(self) -> tuple[bytes, ...]:
        """Return the ids of the directories that are cordoned now."""
        shared = self._shared
        directories = shared.directories
        cordoned = set(map(Path, cordoned_log_dirs(shared.config, shared.loader.published)))
        return tuple(
            directory_id
            for path, directory_id in zip(
                directories.log_directories, directories.log_directory_ids, strict=True
            )
            if path in cordoned
        )

    def _broker_services(self, apis: ServedApis[BrokerServices]) -> BrokerServices:
        shared, config = self._shared, self._shared.config
        return BrokerServices(
            config=config,
            cluster_id=shared.directories.cluster_id,
            raft=shared.raft,
            loader=shared.loader,
            forwarder=self._forwarder,
            topic_creator=self._topic_creator,
            metadata_topic=_metadata_topic(shared),
            replicas=self._replication.replicas,
            publisher=self._replication.publisher,
            replication_quotas=self._replication.quotas,
            inspector=self._inspector,
            producer_ids=self._producer_ids,
            fetch_sessions=FetchManager(config.network.fetch_session_slots, shared.random),
            replica_selector=_replica_selector(config),
            coordinated_groups=self._groups,
            coordinated_transactions=self._coordinated_transactions,
            coordinated_shares=self._coordinated_shares,
            fetched_shares=self._fetched_shares,
            coordinated_share_groups=self._share_groups,
            transactions=self._transactions,
            throttling=_request_handler_helper(shared),
            purgatories=self._purgatories,
            runtime=shared.runtime,
            random=shared.random,
            served=lambda: self._served(apis),
            check_stores=shared.check_stores,
        )

    def _served(self, apis: ServedApis[BrokerServices]) -> VersionRanges:
        """Return the APIs served now, forwarded ones in the versions that the controller serves."""
        offered = self._forwarder.channel.controller_versions
        forwardable = forwardable_keys()
        ranges: dict[int, tuple[int, int]] = {}
        for key, api in apis.items():
            first, last = api.min_listed, api.max_version
            if offered and key in forwardable:
                theirs = offered.get(key, (0, -1))
                first, last = max(first, theirs[0]), min(last, theirs[1])
            if first <= last:
                ranges[key] = (first, last)
        return ranges


def _broker_connections(shared: SharedServer, purpose: str) -> BrokerConnections:
    config = shared.config
    return BrokerConnections(
        f"broker-{config.node_id}-{purpose}",
        config.listeners.inter_broker_name,
        lambda: shared.loader.published,
        shared.to_brokers,
        request_timeout_ms=config.network.request_timeout_ms,
    )


def _replica_selector(config: NodeConfig) -> RackAwareReplicaSelector | None:
    name = config.replication.selector_class
    if name is None:
        return None
    if name != RACK_AWARE:
        raise NodeStartError(
            f"replica.selector.class is {name}, but {RACK_AWARE} is the only selector that kvorum "
            "has"
        )
    return RackAwareReplicaSelector()


def _request_handler_helper(shared: SharedServer) -> RequestHandlerHelper:
    quotas = QuotaManagers(shared.config.network.quota_windows)
    quotas.update(shared.loader.published.client_quotas)
    shared.loader.subscribe(
        lambda image: quotas.update(image.client_quotas), doing="taking the quotas of clients"
    )
    return RequestHandlerHelper(quotas, shared.clock)


def _metadata_topic(shared: SharedServer) -> MetadataTopic | None:
    if not shared.config.own.is_metadata_topic_readable:
        return None
    # Few brokers let it be read, and every start would be later.
    from kvorum.node.broker.metadata_topic import MetadataTopic  # noqa: PLC0415 - see above

    return MetadataTopic(shared.raft, shared.loader, shared.runtime)
