"""A simulated broker: a machine, and the session of the process that runs on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.lifecycle import BrokerIdentity, BrokerLifecycle, BrokerState, LocalView
from kvorum.broker.quota.rate import MetricConfig
from kvorum.broker.quota.replication_quota_manager import (
    ReplicationQuotaManagers,
    new_replication_quota_managers,
)
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.cluster_image import Endpoint
from kvorum.metadata.features import supported_features
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.broker_logs import BrokerLogs
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.controller_reports import AssignmentsManager
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.replica_alter_log_dirs import MoveSettings, ReplicaAlterLogDirsManager
from kvorum.node.broker.replica_fetchers import ReplicaFetcherManager
from kvorum.node.broker.replica_manager import LogDirFailureHandler, ReplicaManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.config import NodeConfig
from kvorum.node.config.settings import CleanerSettings, LogSettings
from kvorum.node.coroutines import Task
from kvorum.node.directories import common_epoch
from kvorum.node.errors import NodeFailedError
from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import HandlerResponse
from kvorum.share_coordinator.share_group_offset import ShareGroupOffset
from kvorum.simulation.disk import MountedDisk
from kvorum.simulation.network import OnReply, Serve
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.partitions.broker_coordination import BrokerCoordination
from kvorum.simulation.partitions.broker_machine import BrokerMachine
from kvorum.simulation.partitions.broker_shares import BrokerShares
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.disk_threads import SimulatedDiskThreads
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.open_connection import OpenConnection
from kvorum.simulation.partitions.outbound import SimulatedControllerChannel, SimulatedLeader
from kvorum.simulation.partitions.replica_watch import ReplicaWatch
from kvorum.simulation.partitions.request_watch import RequestWatch
from kvorum.simulation.partitions.sasl_listener import (
    AppliedMetadata,
    SaslListener,
    refuse_connection,
)
from kvorum.simulation.partitions.served_requests import (
    ServedRequests,
    broker_config,
    broker_services,
)
from kvorum.simulation.partitions.settings import (
    CLUSTER_ID,
    HEARTBEAT_MS,
    LAG_MAX_MS,
    ROOTS,
    directory_id,
)
from kvorum.simulation.partitions.share_group_settings import SHARE_GROUP
from kvorum.simulation.partitions.share_watch import ShareWatch
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_directory_files import LogDirectoryFiles
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.small_files.clean_shutdown import (
    read_clean_shutdown,
    renew_clean_shutdown,
    take_clean_shutdown,
)
from kvorum.storage.topic_partition import TopicPartition
from kvorum.transactions.transaction_metadata import TransactionMetadata
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import BrokerRegistrationResponse
from kvorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kvorum.wire.primitives import Message

METADATA_ROOT: Final = Path("/metadata")
"""The log directory of the metadata log, which never fails here."""
FAILURE_IS_KNOWN_MS: Final = 1_500
"""The time in which the controller has to learn of a failed directory."""
DELETE_DELAY_MS: Final = 100
OPEN_FILES_MAX: Final = 4
"""Fewer than the logs have, so that files are let go and opened again."""
DEDUPE_BUFFER_BYTES: Final = 4_096, 100_000
"""Memory of the cleaner for the keys of a few segments, or for all of a log."""
FETCH_BYTES: Final = 1_200
FETCH_BACKOFF_MS: Final = 30
FETCH_WAIT_MS: Final = 30
PUMP_MS: Final = 10
PRODUCER_CHECK_MS: Final = 600_000
"""Kafka's default: no world lasts long enough for a producer to be idle for its time."""


class BrokerSession:
    """The state of a process; it is gone when the process ends.

    `on_failure` is called with what the broker ends for. Construction and every callback may raise
    what the disk raises.

    Its replicas are a node's: `BrokerMetadataPublisher`, `ReplicaManager`, `BrokerLogs` and what is
    below them run here in simulated time, on a simulated disk.
    """

    def __init__(
        self,
        broker_id: int,
        around: BrokerSurroundings,
        machine: BrokerMachine,
        disks: tuple[MountedDisk, ...],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._id = broker_id
        self._around, self._machine, self._disks = around, machine, disks
        self._on_failure = on_failure
        self.image = MetadataImage()
        self._applied = 0
        self._channel = SimulatedControllerChannel(broker_id, around, machine)
        self._has_begun, self._is_over = False, False
        self.is_serving = False
        """Whether the logs are open, and the partitions as an image has them."""
        self._broker = ThisBroker(
            id=broker_id,
            epoch=lambda: self.epoch,
            image=lambda: self.image,
            runtime=SimulatedRuntime(
                around.events, machine.node.clock, around.random, turn=machine.turn()
            ),
            on_failure=on_failure,
        )
        self._coordination: BrokerCoordination | None = None
        self._shares: BrokerShares | None = None
        self._share_watch: ShareWatch | None = None
        self._logins: SaslListener | None = None
        self._make_replicas()
        shutdowns = [read_clean_shutdown(*place) for place in zip(ROOTS, disks, strict=True)]
        self._lifecycle = BrokerLifecycle(
            self._identity(common_epoch(shutdowns)),
            heartbeat_interval_ms=HEARTBEAT_MS,
            now_ms=around.now_ms,
        )

    def _identity(self, previous_epoch: int) -> BrokerIdentity:
        return BrokerIdentity(
            node_id=self._id,
            cluster_id=CLUSTER_ID,
            incarnation_id=bytes([self._id]) + self._machine.node.start_count.to_bytes(15, "big"),
            listeners=(Endpoint("PLAIN", f"b{self._id}", 9092, 0),),
            rack=None,
            directory_ids=tuple(directory_id(self._id, number) for number in range(len(ROOTS))),
            previous_epoch=previous_epoch,
        )

    @property
    def is_stopping(self) -> bool:
        """Whether a controlled shutdown is under way."""
        return self._lifecycle.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN

    @property
    def epoch(self) -> int:
        """The broker epoch, -1 before the registration."""
        return self._lifecycle.epoch

    def _make_replicas(self) -> None:
        broker, around = self._broker, self._around
        quotas = new_replication_quota_managers(
            lambda: self.image.configs,
            broker.id,
            replication=MetricConfig(11, 1_000),
            alter_log_dirs=MetricConfig(11, 1_000),
        )
        configs = TopicConfigs(broker.id, {})
        manager = LogManager(
            LogManagerSettings(delete_delay_ms=DELETE_DELAY_MS),
            config_of=lambda topic: configs.values(topic, self.image).log_config(),
            producer_expiration_ms=lambda: configs.producer_expiration_ms(self.image),
            random=around.random,
            threads=SimulatedDiskThreads(broker.runtime, around.disk_random),
        )
        self._logs = BrokerLogs(
            broker, manager, self._log_settings(), deletion_check_ms=around.random.randint(40, 300)
        )
        assignments = AssignmentsManager(broker, self._channel)
        moves = MoveSettings(tuple(map(str, ROOTS)), tuple, FETCH_BYTES, FETCH_BACKOFF_MS)
        self.replicas = ReplicaManager(
            broker,
            self._logs,
            configs,
            fetchers=ReplicaFetcherManager(
                broker,
                FetcherSettings(
                    broker.id,
                    wait_ms_max=FETCH_WAIT_MS,
                    bytes_max=FETCH_BYTES,
                    backoff_ms=FETCH_BACKOFF_MS,
                ),
                self._leader_endpoint,
                quotas.follower,
                fetcher_count=1,
            ),
            log_dir_moves=ReplicaAlterLogDirsManager(
                broker, moves, self._logs, assignments, quotas.alter_log_dirs
            ),
            assignments=assignments,
            alter_partition_channel=self._channel,
            lag_ms_max=LAG_MAX_MS,
        )
        self._publisher = BrokerMetadataPublisher(broker, self.replicas, quotas)
        self._make_coordinators(quotas)
        self._failures = LogDirFailureHandler(
            broker, self.replicas, METADATA_ROOT, self._on_directory_offline
        )
        self._watch = ReplicaWatch(
            self.replicas, around.places, around.ledger, broker.runtime.wall_ms
        )

    def _make_coordinators(self, quotas: ReplicationQuotaManagers) -> None:
        """Make what coordinates groups and transactions, and what answers requests."""
        broker, around = self._broker, self._around
        self._groups = GroupCoordinatorService(
            around.settings.groups.of_broker,
            self.replicas,
            broker_id=broker.id,
            runtime=broker.runtime,
            random=around.random,
        )
        logins = around.logins
        config = broker_config(
            broker.id, around.settings, None if logins is None else logins.settings
        )
        if around.settings.transactions is not None:
            self._coordination = BrokerCoordination(
                config,
                broker,
                around,
                self._machine,
                replicas=self.replicas,
                publisher=self._publisher,
                channel=self._channel,
                handle=self._answer_own,
            )
        self._make_shares(config)
        services = broker_services(
            config,
            around,
            broker,
            replicas=self.replicas,
            publisher=self._publisher,
            replication_quotas=quotas,
            groups=self._groups,
            coordination=self._coordination,
        )
        if self._shares is not None:
            services = self._shares.added_to(services)
        watch = RequestWatch(self._groups, self.replicas, around, self._machine, self._share_watch)
        self._served = ServedRequests(services, around, self._machine.guard, watch)
        if logins is not None:
            process = self._machine.node.process
            assert process is not None
            applied = AppliedMetadata(broker.image, lambda: self._applied - 1, process.client)
            self._logins = SaslListener(services, around, logins, self._served, applied)

    def _make_shares(self, config: NodeConfig) -> None:
        """Make what serves the share group, and watches over it, in a world with one."""
        broker = self._broker
        around = self._around
        if around.settings.groups.share is None:
            return
        self._shares = BrokerShares(
            config.listeners.inter_broker_name,
            broker,
            around,
            self._machine,
            replicas=self.replicas,
            publisher=self._publisher,
            groups=self._groups,
            handle=self._answer_own,
        )
        self._share_watch = ShareWatch(
            around.share_groups[SHARE_GROUP],
            self._shares.partitions,
            broker,
            around.checks,
            incarnation=self._machine.node.start_count,
        )

    async def _answer_own(self, request: IncomingRequest[Message]) -> HandlerResponse:
        return await self._served.answer_own(request)

    def _log_settings(self) -> LogSettings:
        random = self._around.random
        return LogSettings(
            high_watermark_checkpoint_ms=random.randint(40, 300),
            recovery_point_checkpoint_ms=random.randint(40, 300),
            retention_check_ms=random.randint(40, 300),
            producer_expiration_check_ms=PRODUCER_CHECK_MS,
            cleaner=CleanerSettings(
                backoff_ms=random.randint(50, 300),
                dedupe_buffer_bytes=random.choice(DEDUPE_BUFFER_BYTES),
                load_factor=0.9,
            ),
        )

    def _leader_endpoint(self, leader_id: int, _: int) -> SimulatedLeader:
        link = self._id, leader_id
        runtime, partition = self._broker.runtime, self.replicas.partition
        return SimulatedLeader(link, self._around, self._machine, runtime, partition)

    def begin(self) -> None:
        """Do everything that a broker does again and again."""
        every, random = self._machine.every, self._around.random
        write_back_ms = self._around.settings.write_back_ms
        self._machine.after_turn = self._look
        every(lambda: random.uniform(1, 25), self._read_metadata)
        every(lambda: PUMP_MS, self._pump)
        every(lambda: random.uniform(*write_back_ms), self._write_back)

    def _look(self) -> None:
        """Take note of what a turn has changed."""
        self._watch.look()
        if self._share_watch is not None:
            self._share_watch.look()

    def _write_back(self) -> None:
        """Make every log durable, as the operating system does in time."""
        for partition in self.replicas.partitions if self.is_serving else ():
            self._logs.flush(partition.log)

    def stop(self) -> None:
        """Ask for a controlled shutdown."""
        self._lifecycle.begin_shutdown(self._around.now_ms)

    def listed_groups(self) -> list[str]:
        """Return the groups that this broker coordinates."""
        return [one.group_id for one in self._groups.list_groups([], [])]

    def described_group(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        """Return a consumer group as this broker describes it."""
        return self._groups.describe_consumer_group(group_id)

    def coordinated_transactions(self) -> list[TransactionMetadata]:
        """Return the transactional ids that this broker coordinates, as they are committed."""
        if self._coordination is None:
            return []
        shards = self._coordination.service.runtime.active_shards()
        return [one for shard in shards for one in shard.ids.all_committed()]

    def share_state(self, key: SharePartitionKey) -> ShareGroupOffset | None:
        """Return the state of a share partition, if this broker coordinates it."""
        return None if self._shares is None else self._shares.state(key)

    def handle(self, frame: bytes, reply: OnReply, disconnect: DisconnectListeners | None) -> None:
        """Answer a request of another broker or a client; the connection breaks without logs."""
        if not self.is_serving:
            reply(ConnectionLostError(f"broker {self._id} is not serving yet"))
            return
        self._served.handle(frame, reply, disconnect)

    def connect(self, disconnect: DisconnectListeners) -> Serve:
        """Return what takes the frames of a new connection to the listener with SASL.

        Its requests end with it, when its end is reported to `disconnect`.
        """
        if not self.is_serving or self._logins is None:
            return refuse_connection
        return self._logins.connect(disconnect)

    # --- the controller ---------------------------------------------------------------------

    def _pump(self) -> None:
        """Send what is due, and end where the controller lets this broker go."""
        self._beat()
        if self._lifecycle.state is BrokerState.SHUTTING_DOWN and not self._is_over:
            self._is_over = True
            if self.epoch >= 0:
                for root, disk in zip(ROOTS, self._disks, strict=True):
                    renew_clean_shutdown(root, disk, broker_epoch=self.epoch)
            Task(self.replicas.shutdown(broker_epoch=self.epoch), self._on_shutdown)

    def _beat(self) -> None:
        due_ms = self._lifecycle.next_due_ms
        if due_ms is not None and due_ms <= self._around.now_ms:
            view = LocalView(supported_features(), self._applied - 1, None, self.is_serving)
            self._channel.ask(self._lifecycle.due(view), self._on_beat)

    def _on_beat(self, answer: Message | None) -> None:
        lifecycle, now_ms = self._lifecycle, self._around.now_ms
        match answer:
            case BrokerRegistrationResponse():
                lifecycle.on_registration(answer, now_ms)
            case BrokerHeartbeatResponse():
                lifecycle.on_heartbeat(answer, now_ms)
            case _:
                lifecycle.on_failure(now_ms)

    def _on_directory_offline(self, path: Path) -> None:
        """Report a failed directory; end where the controller does not learn of it (KIP-858)."""
        failed = directory_id(self._id, ROOTS.index(path))
        self._lifecycle.propagate_directory_failure(failed, self._around.now_ms)
        self._around.ledger.counts["directory offline"] += 1

        def demand_known() -> None:
            if not self._lifecycle.is_failure_known(failed):
                self._on_failure(NodeFailedError(f"nobody knows that {path} has failed"))

        self._around.events.after(FAILURE_IS_KNOWN_MS, self._machine.guard(demand_known))

    def move_replica(self, wanted: TopicPartition | None) -> None:
        """Begin to move a replica, any without a wish, to some directory (AlterReplicaLogDirs)."""
        partitions = [one.topic_partition for one in self.replicas.partitions]
        if wanted is not None:
            partitions = [wanted]
        if partitions:
            partition = self._around.random.choice(partitions)
            directory = str(self._around.random.choice(ROOTS))
            Task(self.replicas.alter_replica_log_dirs({partition: directory}), lambda _: None)

    def _on_shutdown(self, result: Exception | None) -> None:
        if result is None:
            self._machine.end(is_power_cut=False)
        else:
            self._on_failure(result)

    # --- the metadata and the logs ----------------------------------------------------------

    def _read_metadata(self) -> None:
        node = self._machine.node.process
        if node is None or (self._has_begun and node.application.image is self.image):
            return
        self.image, self._applied = node.application.image, node.application.next_offset
        broker = self.image.cluster.brokers.get(self._id)
        # A broker does nothing before it has read its own registration.
        if self._has_begun:
            self._publisher.on_metadata_update(self.image)
        elif broker is not None and broker.epoch == self.epoch:
            self._has_begun = True
            self._broker.run(self._open_logs())

    async def _open_logs(self) -> None:
        open_files = OpenFiles(OPEN_FILES_MAX)
        directories = [
            LogDirectory(
                root,
                directory_id(self._id, number),
                LogDirectoryFiles(disk, root, self._failures.channel, open_files),
                was_clean=take_clean_shutdown(root, disk).was_clean,
            )
            for number, (root, disk) in enumerate(zip(ROOTS, self._disks, strict=True))
        ]
        await self._logs.startup(directories, has_offline_log_dirs=False)
        await self._publisher.startup()
        self.replicas.startup()
        self._failures.startup()
        self.is_serving = True


class Broker:
    """A broker that is started, stopped and ended again and again.

    `on_crash` is called with the error that has ended a process by itself.
    """

    def __init__(
        self,
        node: SimulatedNode,
        around: BrokerSurroundings,
        on_crash: Callable[[Broker, BaseException], None],
    ) -> None:
        self.id = node.node_id
        self._around = around
        self._on_error = partial(on_crash, self)
        self.machine = BrokerMachine(around.events, around.random, node, self._on_error)
        for disk, root in zip(self.machine.disks, ROOTS, strict=True):
            disk.mount().make_directory(root)
        self._session: BrokerSession | None = None

    @property
    def is_up(self) -> bool:
        """Whether a process runs."""
        return self.machine.node.is_up

    @property
    def incarnation(self) -> int:
        """The number of processes so far, the present one included."""
        return self.machine.node.start_count

    @property
    def is_stopping(self) -> bool:
        """Whether a controlled shutdown is under way."""
        return self._session is not None and self._session.is_stopping

    @property
    def epoch(self) -> int:
        """The broker epoch of this process, or of the last one; -1 before it is registered."""
        return -1 if self._session is None else self._session.epoch

    @property
    def is_registered(self) -> bool:
        """Whether this process, or the last one, has been given a broker epoch."""
        return self.epoch >= 0

    @property
    def image(self) -> MetadataImage:
        """The metadata that the process knows."""
        return MetadataImage() if self._session is None else self._session.image

    def start(self) -> None:
        """Start a process."""
        disks = self.machine.start()
        self.machine.guard(lambda: self._begin(disks))()

    def _begin(self, disks: tuple[MountedDisk, ...]) -> None:
        session = BrokerSession(self.id, self._around, self.machine, disks, self._on_error)
        self._session = session
        session.begin()

    def stop(self) -> None:
        """Ask for a controlled shutdown."""
        if self._session is not None:
            self._session.stop()

    def move_replica(self, wanted: TopicPartition | None) -> bool:
        """Begin to move a replica, any without a wish; return whether the broker can do that."""
        session = self._session
        if not self.is_up or session is None or not session.is_serving:
            return False
        self.machine.guard(lambda: session.move_replica(wanted))()
        return True

    def replica(self, place: int) -> Replica | None:
        """Return a replica to look at, by its partition's number among those of all topics.

        None if the broker does not have it, or cannot read it.
        """
        session = self._session
        if not self.is_up or session is None:
            return None
        partition = session.replicas.partition(*self._around.places.partition(place))
        if (
            partition is None
            or partition.log.local_log.poison.is_there
            or partition.log.local_log.is_closed
        ):
            return None
        return Replica(self.id, place, partition.log)

    def hosted_topics(self) -> set[bytes]:
        """Return the ids of the topics of which the process has replicas."""
        session = self._session
        return set() if session is None else {one.topic_id for one in session.replicas.partitions}

    def listed_groups(self) -> list[str]:
        """Return the groups that the broker lists (ListGroups)."""
        return [] if self._session is None else self._session.listed_groups()

    def described_group(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup | None:
        """Return a consumer group as the broker describes it (ConsumerGroupDescribe)."""
        return None if self._session is None else self._session.described_group(group_id)

    def coordinated_transactions(self) -> list[TransactionMetadata]:
        """Return the transactional ids that the broker coordinates, as they are committed."""
        return [] if self._session is None else self._session.coordinated_transactions()

    def share_state(self, key: SharePartitionKey) -> ShareGroupOffset | None:
        """Return the state of a share partition, if the broker coordinates it."""
        return None if self._session is None else self._session.share_state(key)

    def receive(
        self, frame: bytes, reply: OnReply, connection: OpenConnection | None = None
    ) -> None:
        """Handle the frame of a request of another broker or a client."""
        session = self._session
        is_open = connection is None or connection.incarnation == self.incarnation
        if self.is_up and session is not None and is_open:
            disconnect = None if connection is None else connection.disconnect
            self.machine.guard(lambda: session.handle(frame, reply, disconnect))()

    def end_connection(self, connection: OpenConnection) -> None:
        """Have the process of a connection act upon its end, if it still runs."""
        if self.is_up and connection.incarnation == self.incarnation:
            self.machine.guard(connection.disconnect.on_disconnect)()

    def connect(self, connection: OpenConnection) -> Serve:
        """Return what takes the frames of a new connection, whose client logs in."""
        session = self._session
        if not self.is_up or session is None:
            return refuse_connection
        serve = session.connect(connection.disconnect)
        return lambda frame, reply: self.machine.guard(partial(serve, frame, reply))()
