"""A running server, and the order in which its roles start and stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from random import SystemRandom
from typing import NamedTuple

from kvorum.node.broker_server import BrokerServer
from kvorum.node.controller_server import ControllerServer
from kvorum.node.directories import open_directories
from kvorum.node.endpoints import bind_listeners, check_advertised
from kvorum.node.errors import NodeFailedError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.serving.socket_server import bind
from kvorum.node.shared_server import ServerEnvironment, SharedServer, open_shared_server
from kvorum.node.snapshot_generator import SnapshotGenerator
from kvorum.node.started_roles import StartedRoles
from kvorum.storage.errors import StorageError

_log = logging.getLogger(__name__)


class ServerFault:
    """The reason why a server cannot continue; later failures are ignored."""

    def __init__(self) -> None:
        self.error: NodeFailedError | None = None
        """The reason, None while the server can continue."""
        self._has_failed = asyncio.Event()

    def note(self, error: Exception) -> None:
        """Record that `error` ended a part that the server needs."""
        if self.error is None:
            self.error = NodeFailedError(str(error))
            self._has_failed.set()

    async def wait(self) -> NodeFailedError:
        """Wait for the first failure and return it."""
        await self._has_failed.wait()
        assert self.error is not None
        return self.error


class RunningServer(NamedTuple):
    """A server whose roles all serve, with what closes them; `start_server` creates it."""

    roles: StartedRoles
    closing: ServerClosing


class ServerClosing:
    """The open parts of a server that starts or runs, which are closed in reverse order.

    The log is closed after the parts that use it, the sockets and the directory locks last.
    """

    def __init__(self, fault: ServerFault) -> None:
        self.resources = ExitStack()
        self.roles = AsyncExitStack()
        self._fault = fault
        self._hands_over = True

    def add_log(self, close: Callable[..., Awaitable[None]]) -> None:
        """Add the log by its `close`, which takes `hands_over`: to ask another voter to lead first.

        A failed log cannot be closed cleanly, which is logged and no error.
        """
        self.roles.push_async_callback(self._close_log, close)

    async def close(self, *, hands_over: bool = True) -> None:
        """Close everything; without `hands_over`, send nothing to other nodes. May be repeated."""
        self._hands_over = hands_over
        try:
            await self.roles.aclose()
        finally:
            self.resources.close()

    async def _close_log(self, close: Callable[..., Awaitable[None]]) -> None:
        try:
            await close(hands_over=self._hands_over)
        except StorageError as error:
            if self._fault.error is None:
                raise
            _log.info(LogEvent("The log could not be closed cleanly", error=str(error)))


async def start_server(environment: ServerEnvironment, fault: ServerFault) -> RunningServer:
    """Start a server and return it once all its roles serve; `fault` records a failure of its log.

    Raises NodeStartError or StorageError, with everything closed.
    """
    closing = ServerClosing(fault)
    try:
        roles = await _ServerStart(environment, fault, closing).run()
    except BaseException:
        await closing.close()
        raise
    return RunningServer(roles, closing)


class _ServerStart:
    """The start of a server: the shared parts, then the roles, one after the other."""

    def __init__(
        self, environment: ServerEnvironment, fault: ServerFault, closing: ServerClosing
    ) -> None:
        self._environment = environment
        self._fault = fault
        self._closing = closing
        self._started: StartedRoles | None = None

    async def run(self) -> StartedRoles:
        """Start the roles and return them once all of them serve."""
        shared = await self._open_shared_server()
        config, closing = shared.config, self._closing.roles
        # The log is closed here only if a role cannot be created; else below, in its turn.
        self._closing.add_log(shared.raft.close)
        controller = ControllerServer(shared) if config.is_controller else None
        if controller is not None:
            closing.push_async_callback(controller.stop)
        snapshots = SnapshotGenerator(
            config, raft=shared.raft, loader=shared.loader, clock=shared.clock
        )
        started = self._started = StartedRoles(shared=shared, snapshots=snapshots)
        self._closing.add_log(shared.raft.close)
        closing.push_async_callback(snapshots.close)
        if controller is not None:
            closing.push_async_callback(controller.begin_stop)
        await shared.raft.start()
        if controller is not None:
            await controller.start()
            started = self._started = replace(started, controller=controller)
        if config.is_broker:
            started = await self._start_broker(started)
        cluster_id = shared.directories.cluster_id
        _log.info(LogEvent("The node runs", node=config.node_id, cluster=cluster_id))
        return started

    async def _open_shared_server(self) -> SharedServer:
        """Open the shared parts; metrics and health are served before the log is open."""
        environment, resources = self._environment, self._closing.resources
        config = environment.config
        listeners = config.listeners
        check_advertised((*listeners.advertised_brokers, *listeners.advertised_controllers))
        directories = open_directories(
            config, environment.files, random=SystemRandom(), locks=resources
        )
        sockets = bind_listeners(listeners.bound, environment.sockets, closing=resources)
        await self._serve_metrics()
        return await open_shared_server(
            environment, directories=directories, sockets=sockets, on_failure=self._fault.note
        )

    async def _start_broker(self, started: StartedRoles) -> StartedRoles:
        broker = BrokerServer(started.shared, self._fault.note)
        self._closing.roles.push_async_callback(broker.abort)
        self._started = replace(started, broker=broker)
        await broker.start()
        return self._started

    async def _serve_metrics(self) -> None:
        """Start to serve metrics and health, if configured; the roles do not exist yet."""
        config = self._environment.config
        address = config.own.metrics_listener
        if address is None:
            return
        # Imported here: a node without metrics starts sooner.
        from kvorum.node.monitoring.metrics_server import LISTENER_NAME, MetricsServer  # noqa: PLC0415 - optional

        remedy = f"change '{LISTENER_NAME}'"
        bound = bind(LISTENER_NAME, address.host, address.port, remedy=remedy)
        self._closing.resources.callback(bound.close)
        monitoring = MetricsServer(config.node_id, lambda: self._started)
        self._closing.roles.push_async_callback(monitoring.stop)
        await monitoring.start(bound)
        host, port = bound.getsockname()[:2]
        _log.info(LogEvent("Metrics and health are served", host=host, port=port))
