"""A node: broker, controller or both, from its configuration, alive in the running event loop."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvorum.node.broker.part import BrokerPart
from kvorum.node.clock import SystemClock
from kvorum.node.config import NodeConfig
from kvorum.node.controller.part import ControllerPart
from kvorum.node.core import NodeCore
from kvorum.node.directories import NodeDirectories, open_directories
from kvorum.node.endpoints import (
    Sockets,
    advertised_endpoints,
    bind_listeners,
    check_advertised,
)
from kvorum.node.errors import NodeFailedError
from kvorum.node.events.event import Event
from kvorum.node.log_follower import LogFollower
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft import Clock, RaftNode
from kvorum.node.replica_settings import replica_settings
from kvorum.node.serving.connection_limits import ConnectionLimits, usable_limits
from kvorum.node.serving.listener import bind
from kvorum.node.snapshot_keeper import SnapshotKeeper
from kvorum.storage.errors import StorageError
from kvorum.storage.files import FileSystem, RealFileSystem

if TYPE_CHECKING:
    from kvorum.node.metrics.part import MetricsPart

_NO_SOCKETS: Sockets = MappingProxyType({})
_log = logging.getLogger(__name__)


class Node:
    """One node; many can live in one process and one loop.

    `sockets` are bound ones for some of its listeners, by name; the node closes them. Connections
    to other nodes are opened through `outgoing`. After the
    first failure of its log or disk the node has failed for good: `failed` says so, and `stop`
    cleans up.
    """

    def __init__(
        self,
        config: NodeConfig,
        *,
        sockets: Sockets = _NO_SOCKETS,
        files: FileSystem | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.config = config
        self._given_sockets = sockets
        self._files = files or RealFileSystem()
        self._clock = clock or SystemClock()
        self.outgoing = Outgoing()
        self._resources = ExitStack()
        self._core: NodeCore | None = None
        self._keeper: SnapshotKeeper | None = None
        self._controller: ControllerPart | None = None
        self._broker: BrokerPart | None = None
        self._metrics: MetricsPart | None = None
        self._metrics_socket: socket.socket | None = None
        self._is_raft_started = False
        self._failure: NodeFailedError | None = None
        self._has_failed = asyncio.Event()

    @property
    def core(self) -> NodeCore:
        """The parts both roles share; there are none before `start`."""
        if self._core is None:
            raise RuntimeError("the node is not started")
        return self._core

    @property
    def metrics_port(self) -> int | None:
        """Where metrics are served, None where they are not."""
        if self._metrics_socket is None:
            return None
        port = self._metrics_socket.getsockname()[1]
        assert isinstance(port, int)
        return port

    @property
    def is_active_controller(self) -> bool:
        """Whether this node is the active controller."""
        return self._controller is not None and self._controller.is_active

    async def failed(self) -> NodeFailedError:
        """Return why the node cannot go on, once it cannot."""
        await self._has_failed.wait()
        assert self._failure is not None
        return self._failure

    async def start(self) -> None:
        """Return once the node serves all its roles.

        Raises NodeStartError, StorageError, or NodeFailedError where its log fails meanwhile; in
        one line, with everything cleaned up.
        """
        try:
            await self._start_unless_it_fails()
        except BaseException:
            await self._clean_up()
            raise

    async def stop(self) -> None:
        """Stop in good order: the broker takes leave first, then the controller. May be repeated.

        A node that has failed only closes what is open.
        """
        if self._failure is None:
            if self._broker is not None:
                await self._broker.stop()
                self._broker = None
            _log.info(Event("The node stops", node=self.config.node_id))
        await self._clean_up()

    async def abort(self) -> None:
        """Close what is open, without a word to anybody, as if the process had died."""
        await self._clean_up(hands_over=False)

    def discard(self) -> None:
        """Close the sockets of a node that will not be started after all."""
        for bound in self._given_sockets.values():
            bound.close()

    async def wait_until_active_controller(self) -> None:
        """Return once this node is the active controller; it must be started."""
        if self._controller is None:
            raise RuntimeError("the node is no controller, or not started")
        await self._controller.wait_until_active()

    async def _start_unless_it_fails(self) -> None:
        """Start; a broker would wait for ever for a controller whose log has failed."""
        starting = asyncio.create_task(self._start())
        failing = asyncio.create_task(self._has_failed.wait())
        try:
            await asyncio.wait({starting, failing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            starting.cancel()
            failing.cancel()
            await asyncio.gather(starting, failing, return_exceptions=True)
        if self._failure is not None:
            raise self._failure
        starting.result()

    async def _start(self) -> None:
        advertised = self.config.listeners
        check_advertised((*advertised.advertised_brokers, *advertised.advertised_controllers))
        directories = open_directories(
            self.config, self._files, random=random.SystemRandom(), locks=self._resources
        )
        sockets = bind_listeners(
            self.config.listeners.bound, self._given_sockets, closing=self._resources
        )
        core = self._make_core(directories, sockets)
        self._core = core
        await self._start_metrics(core)
        if self.config.is_controller:
            self._controller = ControllerPart(core)
        self._keeper = SnapshotKeeper(
            self.config, raft=core.raft, loader=core.loader, clock=self._clock
        )
        if self._metrics is not None:
            self._metrics.keeper = self._keeper
        self._is_raft_started = True
        await core.raft.start()
        if self._controller is not None:
            await self._controller.start()
            if self._metrics is not None:
                self._metrics.controller = self._controller
        if self.config.is_broker:
            self._broker = BrokerPart(core)
            if self._metrics is not None:
                self._metrics.broker = self._broker
            await self._broker.start()
        cluster_id = directories.cluster_id
        _log.info(Event("The node runs", node=self.config.node_id, cluster=cluster_id))

    async def _start_metrics(self, core: NodeCore) -> None:
        """Serve metrics and health before there is anything to tell, if at all."""
        address = self.config.own.metrics_listener
        if address is None:
            return
        # Imported here: a node without it starts sooner.
        from kvorum.node.metrics.part import LISTENER_NAME, MetricsPart  # noqa: PLC0415 - optional

        remedy = f"change '{LISTENER_NAME}'"
        bound = bind(LISTENER_NAME, address.host, address.port, remedy=remedy)
        self._resources.callback(bound.close)
        self._metrics_socket = bound
        self._metrics = MetricsPart(core)
        await self._metrics.start(bound)
        host, port = bound.getsockname()[:2]
        _log.info(Event("Metrics and health are served", host=host, port=port))

    def _make_core(self, directories: NodeDirectories, sockets: Sockets) -> NodeCore:
        endpoints = advertised_endpoints(self.config.listeners.advertised_controllers, sockets)
        loader = MetadataLoader(self._clock)
        follower = LogFollower(loader, self._fail)
        network = self.config.network
        limits = usable_limits(
            total_max=network.connections_max, per_address_max=network.connections_per_ip_max
        )
        return NodeCore(
            config=self.config,
            directories=directories,
            files=self._files,
            clock=self._clock,
            random=random.SystemRandom(),
            sockets=sockets,
            controller_endpoints=endpoints,
            loader=loader,
            follower=follower,
            raft=RaftNode(
                replica_settings(self.config, directories, endpoints),
                listener=follower,
                files=self._files,
                clock=self._clock,
                random=random.SystemRandom(),
                outgoing=self.outgoing,
            ),
            outgoing=self.outgoing,
            limits=ConnectionLimits(limits, self._clock),
        )

    async def _clean_up(self, *, hands_over: bool = True) -> None:
        """Close whatever is open, the log after those who use it, the locks last."""
        try:
            if self._broker is not None:
                await self._broker.abort()
            if self._controller is not None:
                await self._controller.begin_stop()
            if self._keeper is not None:
                await self._keeper.close()
            await self._close_log(hands_over=hands_over)
            if self._controller is not None:
                await self._controller.stop()
        finally:
            if self._metrics is not None:
                await self._metrics.stop()
            self._broker = self._controller = self._metrics = None
            self._metrics_socket = None
            self._resources.close()

    async def _close_log(self, *, hands_over: bool) -> None:
        """Close the log; one that failed before cannot be left clean, and need not be."""
        if self._core is None or not self._is_raft_started:
            return
        self._is_raft_started = False
        try:
            await self._core.raft.close(hands_over=hands_over)
        except StorageError as error:
            if self._failure is None:
                raise
            _log.info(Event("The log could not be closed cleanly", error=str(error)))

    def _fail(self, error: Exception) -> None:
        """Note the first failure; whoever runs the node stops it."""
        if self._failure is None:
            self._failure = NodeFailedError(str(error))
            self._has_failed.set()


def known_ports(node: Node) -> Mapping[str, int]:
    """Return the port of each listener of a started node, by name."""
    return {name: opened.getsockname()[1] for name, opened in node.core.sockets.items()}
