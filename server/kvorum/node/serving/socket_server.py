"""Kafka's SocketServer, for one listener: a listening socket with its connections."""

import asyncio
import errno
import logging
import socket

from kvorum.metadata.address import Address
from kvorum.node.errors import NodeStartError
from kvorum.node.serving.authentications import Authentications
from kvorum.node.serving.connection import OpenConnections, ServerConnection
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.sockets import end_listening, keep_port, let_port_be_reused
from kvorum.node.tasks import cancel_and_wait

SWEEP_INTERVAL_SECONDS_MAX = 30.0
SWEEPS_PER_IDLE_TIME = 4
PORT_MAX = 65_535
BACKLOG_MIN = 1024
"""One thread accepts and answers: while it answers, new connections wait in this queue."""
_log = logging.getLogger(__name__)


class SocketServer:
    """Accepts connections on one socket and closes those that are idle for too long."""

    def __init__(self, rules: ConnectionRules, *, idle_ms_max: int, backlog: int) -> None:
        self._rules = rules
        self._idle_ms_max = idle_ms_max
        self._backlog = backlog
        self._connections = OpenConnections(rules.runtime)
        self._server: asyncio.Server | None = None
        self._bound: socket.socket | None = None
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    @property
    def authentications(self) -> Authentications:
        """The numbers of clients that have been let in, and have not."""
        return self._connections.authentications

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket, which this server closes."""
        loop = asyncio.get_running_loop()
        let_port_be_reused(bound)
        self._bound = bound
        try:
            self._server = await loop.create_server(
                lambda: ServerConnection(self._rules, self._connections),
                sock=bound,
                backlog=max(self._backlog, BACKLOG_MIN),
                start_serving=False,
            )
            # It is known by now: a start that is cancelled here can be undone by `stop`.
            await self._server.start_serving()
        except OSError as error:
            reason = _reason(error, bound.getsockname()[1], "change 'listeners'")
            raise NodeStartError(f"Cannot listen on {self._rules.listener}: {reason}") from error
        if self._idle_ms_max > 0:
            self._sweeper = loop.create_task(self._sweep())

    async def stop(self) -> None:
        """Stop listening and close every connection. May be repeated."""
        if self._sweeper is not None:
            await cancel_and_wait(self._sweeper)
            self._sweeper = None
        server, self._server = self._server, None
        if server is not None and self._bound is not None:
            await _stop_accepting(server)
            end_listening(self._bound)
            server.close()
        # A socket accepted a moment ago may become a connection only after this point.
        self._connections.is_over = True
        for connection in tuple(self._connections):
            connection.finish()

    async def _sweep(self) -> None:
        interval = self._idle_ms_max / 1000 / SWEEPS_PER_IDLE_TIME
        while True:
            await asyncio.sleep(min(interval, SWEEP_INTERVAL_SECONDS_MAX))
            oldest_ms = self._rules.runtime.monotonic_ms() - self._idle_ms_max
            for connection in tuple(self._connections):
                connection.close_if_idle(oldest_ms)


async def _stop_accepting(server: asyncio.Server) -> None:
    """Accept no more connections; a socket accepted a moment ago still becomes one.

    A server that is closed before that loses these: asyncio neither serves nor closes the sockets.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)


def bind(
    name: str,
    host: str | None,
    port: int,
    *,
    remedy: str = "change 'listeners'",
    takes_lingering: bool = True,
) -> socket.socket:
    """Return a socket bound for the listener called `name`; a `host` of None is every interface.

    A port whose former owner is gone, but for connections that linger, is bound unless
    `takes_lingering` is False: a killed node may be about to have it again.

    Raises NodeStartError in one line, which ends with `remedy`, if the address cannot be bound.
    """
    shown = f"{name}://{Address(host or '', port)}"
    if not 0 <= port <= PORT_MAX:
        raise NodeStartError(f"Cannot listen on {shown}: there is no port {port}. Please {remedy}")
    try:
        if host is None:
            return _bind_everywhere(port, takes_lingering=takes_lingering)
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
        return _bind(opened, address, takes_lingering=takes_lingering)
    except socket.gaierror as error:
        raise NodeStartError(
            f"Cannot listen on {shown}: the name {host} is not known here ({error.strerror}). "
            f"Please {remedy}"
        ) from error
    except OSError as error:
        reason = _reason(error, port, remedy)
        raise NodeStartError(f"Cannot listen on {shown}: {reason}") from error


def _bind_everywhere(port: int, *, takes_lingering: bool) -> socket.socket:
    if not socket.has_dualstack_ipv6():
        single = socket.socket(socket.AF_INET)
        return _bind(single, ("", port), takes_lingering=takes_lingering)
    dual = socket.socket(socket.AF_INET6)
    dual.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    return _bind(dual, ("::", port), takes_lingering=takes_lingering)


def _bind(
    opened: socket.socket, address: tuple[object, ...], *, takes_lingering: bool
) -> socket.socket:
    try:
        opened.setblocking(False)
        _bind_alone(opened, address, takes_lingering=takes_lingering)
    except OSError:
        opened.close()
        raise
    return opened


def _bind_alone(
    opened: socket.socket, address: tuple[object, ...], *, takes_lingering: bool
) -> None:
    """Bind so that no other process can bind the port before this one listens on it.

    A port with connections of a former process that linger cannot be had without SO_REUSEADDR.
    Linux gives a port to all who have the option as long as none listens, so a socket has it for
    no longer than it takes to bind, and then again when it begins to listen.
    """
    try:
        opened.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not takes_lingering:
            raise
        let_port_be_reused(opened)
        opened.bind(address)
        keep_port(opened)


def _reason(error: OSError, port: int, remedy: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is taken by another process. Stop it or {remedy}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"the address is not one of this machine. Please {remedy}"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"this user may not listen on port {port}. Please {remedy}"
    return error.strerror or str(error)
