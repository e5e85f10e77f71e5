"""Kafka's SharedServer: the directories, sockets, log and metadata that both roles share."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Protocol, TypeVar

from kvorum.metadata.cluster_image import Endpoint
from kvorum.metadata.features import VersionRange, supported_features
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.clock import Clock
from kvorum.node.config import Listener, NodeConfig
from kvorum.node.directories import NodeDirectories
from kvorum.node.endpoints import Sockets, advertised_endpoints
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader, PublishedImages
from kvorum.node.outbound.node_logins import logins_of_node
from kvorum.node.outbound.node_to_controller_channel_manager import NodeToControllerChannelManager
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.outbound.renewals import Renewals
from kvorum.node.raft import RaftNode, RaftSettings
from kvorum.node.raft.listener import CommittedBatch, InPieces, LoadedSnapshot
from kvorum.node.runtime import Runtime
from kvorum.node.serving.connection_quotas import NodeConnectionQuotas
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.serving.listener_sasl import ListenerSasl, sasl_of_node
from kvorum.node.serving.listener_tls import ListenerTls, NodeTls
from kvorum.node.serving.request_handler import RequestHandler
from kvorum.node.serving.request_metrics import RequestChannelMetrics
from kvorum.node.serving.socket_server import SocketServer
from kvorum.node.serving.used_tls import context_of
from kvorum.node.tasks import run
from kvorum.node.tls_renewal import Connecting, TlsRenewal
from kvorum.raft import Destination, RaftConfig
from kvorum.raft import Endpoint as RaftEndpoint
from kvorum.security.client_security import ClientSecurity
from kvorum.security.renewable import Renewable
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.files import FileSystem

_log = logging.getLogger(__name__)
Services = TypeVar("Services")


class QuorumListener(Protocol):
    """A listener to changes of leadership, and to commits that the loader has applied."""

    def committed(self) -> None:
        """Handle a commit that the loader has applied."""
        ...

    def lead(self, epoch: int) -> None:
        """Handle that this replica leads: the loader has everything before this epoch."""
        ...

    def renounce(self) -> None:
        """Handle that this replica leads no longer."""
        ...

    def leader_found(self) -> None:
        """Handle that the quorum has another leader, or the same one in a new epoch."""
        ...


class MetadataLogListener:
    """The listener of a node's replica, which passes each commit to the loader first.

    Further listeners are registered before the replica starts, as with Kafka's RaftClient.
    """

    def __init__(self, loader: MetadataLoader, on_failure: Callable[[Exception], None]) -> None:
        self._listeners: list[QuorumListener] = []
        self._loader = loader
        self._on_failure = on_failure

    def register(self, listener: QuorumListener) -> None:
        """Call `listener` for everything from now on, each time after the loader."""
        self._listeners.append(listener)

    def on_snapshot(self, snapshot: LoadedSnapshot) -> InPieces:
        """Replace the metadata by a snapshot."""
        return self._loader.load_in_pieces(snapshot)

    def on_commit(self, batches: Sequence[CommittedBatch]) -> InPieces:
        """Apply the committed batches, and send the responses that waited for them."""
        yield from self._loader.commit_in_pieces(batches)
        for listener in self._listeners:
            listener.committed()

    def on_leadership_gained(self, epoch: int) -> None:
        """Make this node's controller the active one."""
        for listener in self._listeners:
            listener.lead(epoch)

    def on_leadership_lost(self, epoch: int) -> None:  # noqa: ARG002 - there is one at a time
        """Make this node's controller inactive."""
        for listener in self._listeners:
            listener.renounce()

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Log the new leader; parts that need the leader ask the replica for it."""
        if leader_id is None:
            _log.info(LogEvent("No leader of the quorum is known", epoch=epoch))
            return
        for listener in self._listeners:
            listener.leader_found()
        _log.info(LogEvent("The quorum has a leader", leader=leader_id, epoch=epoch))

    def on_failure(self, error: Exception) -> None:
        """Record the failure, which stops the node: it cannot run without its log."""
        self._on_failure(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEnvironment:
    """The parts that a server receives from outside.

    `sockets` are already bound sockets of some of its listeners, by name; the server closes them.
    Connections to other nodes are opened through `outgoing`. The logs of all servers in the process
    share `open_files`.
    """

    config: NodeConfig
    sockets: Sockets
    files: FileSystem
    open_files: OpenFiles
    clock: Clock
    outgoing: Outgoing


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServer:
    """The parts that exist before any role; the log is open, its replica not yet started."""

    config: NodeConfig
    directories: NodeDirectories
    files: FileSystem
    open_files: OpenFiles
    clock: Clock
    runtime: Runtime
    handshakes: AsyncioRuntime
    random: Random
    sockets: Sockets
    tls: Mapping[str, ListenerTls]
    sasl: Mapping[str, ListenerSasl]
    controller_endpoints: tuple[Endpoint, ...]
    loader: MetadataLoader
    images: PublishedImages
    log_listener: MetadataLogListener
    raft: RaftNode
    to_controllers: Outgoing
    to_brokers: Outgoing
    check_stores: Callable[[Mapping[str, str]], None]
    connection_quotas: NodeConnectionQuotas
    request_metrics: RequestChannelMetrics

    @property
    def supported_features(self) -> Mapping[str, VersionRange]:
        """The supported feature levels that this node registers with."""
        return supported_features(enable_unstable=self.config.enable_unstable_feature_versions)

    def channel(self, purpose: str, *, timeout_ms: int) -> NodeToControllerChannelManager:
        """Return a new channel to the active controller."""
        return NodeToControllerChannelManager(
            self.config.node_id,
            purpose,
            self.raft.leader_endpoint,
            why_no_leader=self.raft.why_no_leader,
            timeout_ms=timeout_ms,
            runtime=self.runtime,
            outgoing=self.to_controllers,
        )

    def server(self, listener: Listener, dispatcher: RequestHandler[Services]) -> SocketServer:
        """Return the server of one listener, not yet started."""
        network = self.config.network
        rules = ConnectionRules(
            listener=listener.name,
            protocol=listener.protocol,
            frame_bytes_max=network.request_bytes_max,
            answer=dispatcher.answer,
            refuse=dispatcher.refuse,
            limits=self.connection_quotas.of_listener(listener.name),
            runtime=self.runtime,
            tls=self.tls.get(listener.name),
            sasl=self.sasl.get(listener.name),
            handshakes=self.handshakes,
        )
        return SocketServer(
            rules, idle_ms_max=network.connections_idle_ms_max, backlog=network.listen_backlog
        )


async def open_shared_server(
    environment: ServerEnvironment,
    *,
    directories: NodeDirectories,
    sockets: Sockets,
    tls: NodeTls,
    renewals: Renewals,
    on_failure: Callable[[Exception], None],
) -> SharedServer:
    """Create the shared parts and open the log, which may take long.

    `on_failure` is called if the log fails later. The caller closes the log, `raft`. Raises
    NodeStartError and StorageError.
    """
    config, clock, files = environment.config, environment.clock, environment.files
    endpoints = advertised_endpoints(config.listeners.advertised_controllers, sockets)
    loader = MetadataLoader(clock)
    key_sets: list[Renewable] = []
    sasl = sasl_of_node(
        config, lambda: loader.published, SystemRandom(), clock, note_renewable=key_sets.append
    )
    logins = logins_of_node(config)
    await run(renewals.start([*key_sets, *logins.renewables]))
    log_listener = MetadataLogListener(loader, on_failure)
    connection_quotas = NodeConnectionQuotas(config, lambda: loader.published, clock)
    loader.subscribe(connection_quotas.on_image, doing="taking the limits of connections")
    to_controllers = environment.outgoing.secured(
        ClientSecurity(context_of(tls.to_controllers), logins.at_controllers)
    )
    to_brokers = environment.outgoing.secured(
        ClientSecurity(context_of(tls.to_brokers), logins.at_brokers)
    )
    renewal = _tls_renewal(config, tls, to_controllers=to_controllers, to_brokers=to_brokers)
    if config.ssl:
        loader.subscribe(renewal.on_image, doing="renewing the stores of TLS")
    raft = await RaftNode.open(
        _replica_settings(config, directories, endpoints),
        listener=log_listener,
        files=files,
        clock=clock,
        random=SystemRandom(),
        outgoing=to_controllers,
    )
    runtime = AsyncioRuntime(clock, thread_name="kvorum-requests")
    return SharedServer(
        config=config,
        directories=directories,
        files=files,
        open_files=environment.open_files,
        clock=clock,
        runtime=runtime,
        handshakes=AsyncioRuntime(clock, thread_name="kvorum-handshakes", thread_count=1),
        random=SystemRandom(),
        sockets=sockets,
        tls=tls.listeners,
        sasl=sasl,
        controller_endpoints=endpoints,
        loader=loader,
        images=PublishedImages(loader, runtime),
        log_listener=log_listener,
        raft=raft,
        to_controllers=to_controllers,
        to_brokers=to_brokers,
        check_stores=renewal.check,
        connection_quotas=connection_quotas,
        request_metrics=RequestChannelMetrics(),
    )


def _tls_renewal(
    config: NodeConfig, tls: NodeTls, *, to_controllers: Outgoing, to_brokers: Outgoing
) -> TlsRenewal:
    listeners = config.listeners
    ways = (
        (listeners.controller_names[0].upper(), tls.to_controllers, to_controllers),
        (listeners.inter_broker_name, tls.to_brokers, to_brokers),
    )
    connections = [Connecting(name, used, way) for name, used, way in ways if used is not None]
    return TlsRenewal(config, tls.listeners, connections)


def _replica_settings(
    config: NodeConfig, directories: NodeDirectories, controllers: tuple[Endpoint, ...]
) -> RaftSettings:
    """Return the settings of the replica of the metadata log."""
    quorum = config.quorum
    return RaftSettings(
        node_id=config.node_id,
        cluster_id=directories.cluster_id,
        directory_id=directories.metadata_directory_id,
        directory=directories.partition_directory,
        can_vote=config.is_controller,
        controller_listener=config.listeners.controller_names[0].upper(),
        local_listeners=tuple(
            RaftEndpoint(endpoint.listener, endpoint.host, endpoint.port)
            for endpoint in controllers
        ),
        static_voters=tuple(
            Destination(voter.node_id, voter.host, voter.port) for voter in quorum.voters
        ),
        bootstrap_servers=quorum.bootstrap_servers,
        raft=config.read(RaftConfig),
        log=config.metadata_log.log,
    )
