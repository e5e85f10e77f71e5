"""A server with the broker role, the controller role or both, in the running event loop.

Its roles start and stop in a fixed order.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack
from dataclasses import replace
from random import SystemRandom
from types import MappingProxyType
from typing import Protocol

from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.broker_server import BrokerServer
from kvorum.node.clock import SystemClock
from kvorum.node.config import NodeConfig
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.controller_server import ControllerServer
from kvorum.node.directories import open_directories
from kvorum.node.endpoints import Sockets, bind_listeners, check_advertised
from kvorum.node.errors import NodeFailedError, NodeStartError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import SnapshotGenerator
from kvorum.node.open_file_limit import log_file_count_max
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.outbound.renewals import Renewals
from kvorum.node.serving.connection_quotas import connection_places
from kvorum.node.serving.listener_tls import tls_of_node
from kvorum.node.serving.socket_server import bind
from kvorum.node.shared_server import ServerEnvironment, SharedServer, open_shared_server
from kvorum.node.sockets import close_listening, ports_held
from kvorum.node.started_roles import StartedRoles
from kvorum.node.tasks import run
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.errors import StorageError
from kvorum.storage.files import FileSystem, RealFileSystem

_log = logging.getLogger(__name__)
_NO_SOCKETS: Sockets = MappingProxyType({})


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


class ClosableLog(Protocol):
    """A log whose replica may ask another voter to lead before it is closed."""

    async def close(self, *, hands_over: bool) -> None:
        """Close it, with `hands_over` once another voter leads, or after a time-out."""
        ...

    def end_waits(self) -> None:
        """Have a `close` that is under way wait no longer for another leader."""
        ...


class ServerClosing:
    """The open parts of a server that starts or runs, which are closed in reverse order.

    The log is closed after the parts that use it, the sockets and the directory locks last.
    """

    def __init__(self, fault: ServerFault) -> None:
        self.resources = ExitStack()
        self.roles = AsyncExitStack()
        self._fault = fault
        self.may_wait = True
        """Whether `close` may wait for other nodes."""
        self._log: ClosableLog | None = None

    def add_log(self, log: ClosableLog) -> None:
        """Add the log; a failed one cannot be closed cleanly, which is logged and no error."""
        self._log = log
        self.roles.push_async_callback(self._close_log, log)

    def end_waits(self) -> None:
        """Have `close` not wait, or wait no longer, for other nodes."""
        self.may_wait = False
        if self._log is not None:
            self._log.end_waits()

    async def close(self, *, hands_over: bool = True) -> None:
        """Close everything; without `hands_over`, send nothing to other nodes. May be repeated."""
        self.may_wait = self.may_wait and hands_over
        try:
            await self.roles.aclose()
        finally:
            self.resources.close()

    async def _close_log(self, log: ClosableLog) -> None:
        try:
            await log.close(hands_over=self.may_wait)
        except StorageError as error:
            if self._fault.error is None:
                raise
            _log.info(LogEvent("The log could not be closed cleanly", error=str(error)))


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
        self._closing.add_log(shared.raft)
        controller = ControllerServer(shared) if config.is_controller else None
        if controller is not None:
            closing.push_async_callback(controller.stop)
        snapshots = SnapshotGenerator(
            config, raft=shared.raft, loader=shared.loader, runtime=shared.runtime
        )
        started = self._started = StartedRoles(shared=shared, snapshots=snapshots)
        self._closing.add_log(shared.raft)
        closing.push_async_callback(lambda: run(snapshots.close()))
        if controller is not None:
            closing.callback(controller.begin_stop)
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
        tls = tls_of_node(config)
        directories = open_directories(
            config, environment.files, random=SystemRandom(), locks=resources
        )
        sockets = bind_listeners(listeners.bound, environment.sockets, closing=resources)
        await self._serve_metrics()
        shared = await open_shared_server(
            environment,
            renewals=self._renewals(),
            directories=directories,
            sockets=sockets,
            tls=tls,
            on_failure=self._fault.note,
        )
        self._closing.roles.callback(shared.handshakes.close)
        return shared

    def _renewals(self) -> Renewals:
        """Return what has tokens and key sets for this server until it is closed."""
        threads = AsyncioRuntime(self._environment.clock, thread_name="kvorum-renewals")
        self._closing.roles.callback(threads.close)
        renewals = Renewals(threads)
        self._closing.roles.callback(renewals.close)
        return renewals

    async def _start_broker(self, started: StartedRoles) -> StartedRoles:
        broker = BrokerServer(started.shared, self._fault.note, started.controller)
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

        bound = bind(LISTENER_NAME, address.host, address.port, remedy=f"change '{LISTENER_NAME}'")
        self._closing.resources.callback(close_listening, bound)
        monitoring = MetricsServer(config.node_id, lambda: self._started, self._environment.clock)
        self._closing.roles.push_async_callback(monitoring.stop)
        await monitoring.start(bound)
        host, port = bound.getsockname()[:2]
        _log.info(LogEvent("Metrics and health are served", host=host, port=port))


class KafkaRaftServer:
    """A server that is started once; one process and one loop can run many servers.

    `sockets` are already bound sockets of some of its listeners, by name; the server closes them.
    Connections to other nodes are opened through `outgoing`. Servers of one process share
    `open_files`; one by itself takes what the process may have open. After the first failure of its
    log or disk the server does not recover: `failed` returns the reason, and `stop` closes what is
    open.
    """

    def __init__(
        self,
        config: NodeConfig,
        *,
        sockets: Sockets = _NO_SOCKETS,
        files: FileSystem | None = None,
        open_files: OpenFiles | None = None,
    ) -> None:
        self.config = config
        self.outgoing = Outgoing()
        self._environment = ServerEnvironment(
            config=config,
            sockets=sockets,
            files=files or RealFileSystem(),
            open_files=open_files or OpenFiles(log_file_count_max(connection_places(config))),
            clock=SystemClock(),
            outgoing=self.outgoing,
        )
        self._fault = ServerFault()
        self._closing = ServerClosing(self._fault)
        self._ending = asyncio.Lock()
        """Ends at the same time would each close the next part, which the other may still need."""
        self._starting: asyncio.Task[None] | None = None
        self._roles: StartedRoles | None = None

    @property
    def is_running(self) -> bool:
        """Whether the server serves all its roles."""
        return self._roles is not None

    @property
    def has_failed(self) -> bool:
        """Whether its log or disk has failed, after which the server does not recover."""
        return self._fault.error is not None

    @property
    def shared_server(self) -> SharedServer:
        """The parts that both roles share; raises RuntimeError if the server does not run."""
        if self._roles is None:
            raise RuntimeError("the node is not started")
        return self._roles.shared

    @property
    def is_active_controller(self) -> bool:
        """Whether this node is the active controller."""
        controller = self._controller
        return controller is not None and controller.is_active

    async def failed(self) -> NodeFailedError:
        """Wait until the server cannot continue, and return the reason."""
        return await self._fault.wait()

    async def start(self) -> None:
        """Start the server; return once all its roles serve.

        Raises NodeStartError, also if the server is stopped meanwhile, StorageError, or
        NodeFailedError if its log fails meanwhile; the text is one line, and everything is closed.
        """
        try:
            await self._start_unless_it_fails()
        except BaseException:
            async with self._ending:
                await self._close(hands_over=True)
            raise

    async def stop(self) -> None:
        """Do a controlled shutdown: the broker first, then the controller. May be repeated.

        A call waits for the end of one that is under way, and of an `abort`.
        A server that has failed only closes what is open, without a controlled shutdown. The waits
        for other nodes end with `end_waits`.
        """
        await self._end_start()
        async with self._ending:
            if self._roles is not None and self._fault.error is None:
                if self._roles.broker is not None:
                    if not self._closing.may_wait:
                        self._roles.broker.end_waits()
                    await self._roles.broker.stop()
                _log.info(LogEvent("The node stops", node=self.config.node_id))
            await self._close(hands_over=True)

    def end_waits(self) -> None:
        """Have `stop` wait for no other node, whether it is under way or comes later."""
        if self._roles is not None and self._roles.broker is not None:
            self._roles.broker.end_waits()
        self._closing.end_waits()

    async def abort(self) -> None:
        """Close what is open without a message to any node, as if the process had died.

        A `stop` that is under way waits for no node any more, and comes to its end first.
        """
        self.end_waits()
        await self._end_start()
        async with self._ending:
            await self._close(hands_over=False)

    def ports_held(self) -> AbstractContextManager[None]:
        """Return the context in which its ports stay taken though it ends: for its next life."""
        return ports_held(self._environment.sockets.values())

    def discard(self) -> None:
        """Close the sockets of a server that will not be started."""
        for bound in self._environment.sockets.values():
            close_listening(bound)

    async def wait_until_active_controller(self) -> None:
        """Wait until this node is the active controller; the server must be started."""
        controller = self._controller
        if controller is None:
            raise RuntimeError("the node is not a controller, or is not started")
        await run(controller.wait_until_active())

    @property
    def _controller(self) -> QuorumController | None:
        server = None if self._roles is None else self._roles.controller
        return None if server is None else server.controller

    async def _start_unless_it_fails(self) -> None:
        """Start, or raise the log's failure: a broker would wait for ever for its controller."""
        starting = self._starting = asyncio.create_task(self._start_roles())
        failing = asyncio.create_task(self._fault.wait())
        try:
            await asyncio.wait({starting, failing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            starting.cancel()
            failing.cancel()
            await asyncio.gather(starting, failing, return_exceptions=True)
        if self._fault.error is not None:
            raise self._fault.error
        if not starting.cancelled():
            starting.result()
        if self._roles is None:
            raise NodeStartError("The node was stopped while it started")

    async def _start_roles(self) -> None:
        start = _ServerStart(self._environment, self._fault, self._closing)
        try:
            self._roles = await start.run()
        except BaseException:
            await self._closing.close()
            raise

    async def _end_start(self) -> None:
        """Cancel a start that is under way; `start` raises its error."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})

    async def _close(self, *, hands_over: bool) -> None:
        """Close everything that is open."""
        try:
            await self._closing.close(hands_over=hands_over)
        finally:
            self._roles = None
            # Those that a start that failed early has not taken yet.
            self.discard()
