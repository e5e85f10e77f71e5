"""The broker role of a node, put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kvorum.broker.lifecycle import BrokerIdentity, BrokerState
from kvorum.node.authorization import Authorizer
from kvorum.node.broker.role import BrokerRole, BrokerTimes
from kvorum.node.broker.topic_creator import TopicCreator
from kvorum.node.core import NodeCore
from kvorum.node.directories import leave_in_good_order, take_previous_epoch
from kvorum.node.endpoints import advertised_endpoints
from kvorum.node.handlers.registry import broker_apis, forwardable_keys
from kvorum.node.outbound.forwarding import Forwarder
from kvorum.node.services import BrokerServices, VersionRanges
from kvorum.node.serving.dispatch import Dispatcher, ServedApi
from kvorum.wire.uuid_text import random_uuid

FORWARDING_TIMEOUT_MS = 60_000
ALL_DIRECTORIES = "*"


class BrokerPart:
    """Broker, its listeners, and its ways to the controller."""

    def __init__(self, core: NodeCore) -> None:
        self._core = core
        config = core.config
        self._forwarder = Forwarder(core.channel("forwarding", timeout_ms=FORWARDING_TIMEOUT_MS))
        self._topic_creator = TopicCreator(config, self._forwarder, core.clock)
        self._role = BrokerRole(
            self._identity(),
            BrokerTimes(
                heartbeat_interval_ms=config.broker.heartbeat_interval_ms,
                registration_timeout_ms=config.broker.registration_timeout_ms,
            ),
            channel=core.channel("heartbeat", timeout_ms=config.broker.heartbeat_interval_ms),
            loader=core.loader,
            clock=core.clock,
            cordoned_directories=self._cordoned_directories(),
        )
        apis = broker_apis()
        services = BrokerServices(
            config=config,
            cluster_id=core.directories.cluster_id,
            raft=core.raft,
            loader=core.loader,
            forwarder=self._forwarder,
            topic_creator=self._topic_creator,
            clock=core.clock,
            random=core.random,
            served=lambda: self._served(apis),
        )
        authorizer = Authorizer(config.security.authorizer, loader=core.loader, raft=core.raft)
        dispatcher = Dispatcher(apis, services, authorizer.access)
        self._servers = {
            listener.name: core.server(listener.name, dispatcher)
            for listener in config.listeners.brokers
        }

    @property
    def state(self) -> BrokerState:
        """Where the broker stands."""
        return self._role.state

    @property
    def is_unfenced(self) -> bool:
        """Whether the metadata, as far as it is known here, has this incarnation unfenced."""
        return self._role.is_unfenced

    def connection_counts(self) -> Mapping[str, int]:
        """Return how many connections are open, by listener."""
        return {name: server.connection_count for name, server in self._servers.items()}

    async def start(self) -> None:
        """Register, wait until the broker runs, and take requests."""
        await self._role.start()
        await self._forwarder.channel.connect()
        for name, server in self._servers.items():
            await server.start(self._core.sockets[name])

    async def stop(self) -> None:
        """Take leave of the controller, close every connection, and note that all went well."""
        was_running = self.state is BrokerState.RUNNING
        if self._core.config.broker.is_controlled_shutdown_enabled:
            await self._role.stop()
        await self.abort()
        if was_running:
            directories = self._core.directories.log_directories
            leave_in_good_order(directories, self._core.files, epoch=self._role.epoch)

    async def abort(self) -> None:
        """Close everything without asking anybody."""
        self._topic_creator.close()
        await self._role.abort()
        for server in self._servers.values():
            await server.stop()
        await self._forwarder.channel.close()

    def _identity(self) -> BrokerIdentity:
        core = self._core
        directories = core.directories
        return BrokerIdentity(
            node_id=core.config.node_id,
            cluster_id=directories.cluster_id,
            incarnation_id=random_uuid(core.random),
            listeners=advertised_endpoints(core.config.listeners.advertised_brokers, core.sockets),
            supported_features=core.supported_features,
            rack=core.config.broker.rack,
            directory_ids=directories.log_directory_ids,
            previous_epoch=take_previous_epoch(directories.log_directories, core.files),
        )

    def _cordoned_directories(self) -> tuple[bytes, ...]:
        directories = self._core.directories
        named = self._core.config.broker.cordoned_log_directories
        if ALL_DIRECTORIES in named:
            return directories.log_directory_ids
        cordoned = {Path(name) for name in named}
        return tuple(
            directory_id
            for path, directory_id in zip(
                directories.log_directories, directories.log_directory_ids, strict=True
            )
            if path in cordoned
        )

    def _served(self, apis: Mapping[int, ServedApi[BrokerServices]]) -> VersionRanges:
        """Return what can be asked for now; what is forwarded only as the controller takes it."""
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
