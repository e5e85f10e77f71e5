"""A server with the broker role, the controller role or both, in the running event loop."""

import asyncio
import logging
from types import MappingProxyType

from kvorum.node.clock import SystemClock
from kvorum.node.config import NodeConfig
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.endpoints import Sockets
from kvorum.node.errors import NodeFailedError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.open_file_limit import log_file_count_max
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.running_server import RunningServer, ServerFault, start_server
from kvorum.node.shared_server import ServerEnvironment, SharedServer
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.files import FileSystem, RealFileSystem

_NO_SOCKETS: Sockets = MappingProxyType({})
_log = logging.getLogger(__name__)


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
            open_files=open_files or OpenFiles(log_file_count_max(config.network.connections_max)),
            clock=SystemClock(),
            outgoing=self.outgoing,
        )
        self._fault = ServerFault()
        self._running: RunningServer | None = None

    @property
    def is_running(self) -> bool:
        """Whether the server serves all its roles."""
        return self._running is not None

    @property
    def shared_server(self) -> SharedServer:
        """The parts that both roles share; raises RuntimeError if the server does not run."""
        if self._running is None:
            raise RuntimeError("the node is not started")
        return self._running.roles.shared

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

        Raises NodeStartError, StorageError, or NodeFailedError if its log fails meanwhile; the text
        is one line, and everything is closed.
        """
        try:
            await self._start_unless_it_fails()
        except BaseException:
            await self._close(hands_over=True)
            raise

    async def stop(self) -> None:
        """Do a controlled shutdown: the broker first, then the controller. May be repeated.

        A server that has failed only closes what is open, without a controlled shutdown.
        """
        if self._running is not None and self._fault.error is None:
            if self._running.roles.broker is not None:
                await self._running.roles.broker.stop()
            _log.info(LogEvent("The node stops", node=self.config.node_id))
        await self._close(hands_over=True)

    async def abort(self) -> None:
        """Close what is open without a message to any node, as if the process had died."""
        await self._close(hands_over=False)

    def discard(self) -> None:
        """Close the sockets of a server that will not be started."""
        for bound in self._environment.sockets.values():
            bound.close()

    async def wait_until_active_controller(self) -> None:
        """Wait until this node is the active controller; the server must be started."""
        controller = self._controller
        if controller is None:
            raise RuntimeError("the node is not a controller, or is not started")
        await controller.wait_until_active()

    @property
    def _controller(self) -> QuorumController | None:
        server = None if self._running is None else self._running.roles.controller
        return None if server is None else server.controller

    async def _start_unless_it_fails(self) -> None:
        """Start, or raise the log's failure: a broker would wait for ever for its controller."""
        starting = asyncio.create_task(start_server(self._environment, self._fault))
        failing = asyncio.create_task(self._fault.wait())
        try:
            await asyncio.wait({starting, failing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            starting.cancel()
            failing.cancel()
            await asyncio.gather(starting, failing, return_exceptions=True)
            if not starting.cancelled() and starting.exception() is None:
                self._running = starting.result()
        if self._fault.error is not None:
            raise self._fault.error
        starting.result()

    async def _close(self, *, hands_over: bool) -> None:
        """Close everything that is open."""
        if self._running is None:
            return
        try:
            await self._running.closing.close(hands_over=hands_over)
        finally:
            self._running = None
