"""Nodes, connections, clock and backoff of the admin client."""

import asyncio
import ipaddress
import random
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvorum.cli.admin.settings import AdminSettings
from kvorum.metadata.address import Address
from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError

_BACKOFF_BASE = 2
_BACKOFF_JITTER = 0.2
_TIMER_SLACK_MS = 1
"""Java counts whole milliseconds: a deadline has passed only one millisecond after it."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of the cluster; a bootstrap address has a negative id."""

    node_id: int
    address: Address


class AdminClock:
    """A clock in milliseconds that starts at the wall-clock time and then runs monotonically."""

    def __init__(self) -> None:
        self._ahead_ms = time.time() * 1000 - time.monotonic() * 1000

    def now_ms(self) -> int:
        """Return the milliseconds since 1970."""
        return int(self._ahead_ms + time.monotonic() * 1000)

    def left_ms(self, deadline_ms: int) -> int:
        """Return the milliseconds until a deadline, 0 if it has passed."""
        return max(0, deadline_ms - self.now_ms())

    async def pause(self, pause_ms: int, *, deadline_ms: int) -> None:
        """Wait, but not beyond a deadline."""
        left_ms = self.left_ms(deadline_ms) + _TIMER_SLACK_MS
        await asyncio.sleep(min(pause_ms, left_ms) / 1000)


class Backoff:
    """Exponential backoff with jitter, as in Kafka's clients."""

    def __init__(self, settings: AdminSettings, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance

    def pause_ms(self, failures: int) -> int:
        """Return the pause after a failure that `failures` others precede."""
        settings = self._settings
        if settings.retry_backoff_ms == 0:
            return 0
        grown_ms = settings.retry_backoff_ms * _BACKOFF_BASE ** min(failures, 30)
        spread = self._chance.uniform(1 - _BACKOFF_JITTER, 1 + _BACKOFF_JITTER)
        return int(min(grown_ms, settings.retry_backoff_max_ms) * spread)


class Connections:
    """The connections of one client; the first failure to connect to a node gives a warning."""

    def __init__(self, settings: AdminSettings, *, clock: AdminClock, warn: Callable[[str], None]):
        self._settings = settings
        self._clock = clock
        self._warn = warn
        self._open: dict[ClusterNode, ClientConnection] = {}
        self._warned: set[ClusterNode] = set()

    def is_open(self, node: ClusterNode) -> bool:
        """Return whether the connection to a node is open."""
        connection = self._open.get(node)
        return connection is not None and connection.is_open

    async def to(self, node: ClusterNode, *, deadline_ms: int) -> ClientConnection | None:
        """Return a connection to a node, None where the node cannot be reached."""
        if self.is_open(node):
            return self._open[node]
        settings = self._settings
        left_ms = self._clock.left_ms(deadline_ms)
        timeout_ms = min(left_ms, settings.connect_timeout_ms, settings.request_timeout_ms)
        try:
            connection = await ClientConnection.open(
                host=node.address.host,
                port=node.address.port,
                client_id=settings.client_id,
                timeout_ms=timeout_ms,
            )
        except ClientConnectionError:
            if node not in self._warned:
                self._warned.add(node)
                self._warn(
                    f"[AdminClient clientId={settings.client_id}] Connection to node "
                    f"{node.node_id} ({_java_address(node.address)}) could not be established. "
                    "Node may not be available."
                )
            return None
        self._open[node] = connection
        return connection

    def in_order(self, nodes: Iterable[ClusterNode], chance: random.Random) -> list[ClusterNode]:
        """Return nodes in the order to try them: connected ones first, otherwise at random."""
        shuffled = list(nodes)
        chance.shuffle(shuffled)
        return sorted(shuffled, key=lambda node: not self.is_open(node))

    async def close(self) -> None:
        """Close every connection."""
        for connection in self._open.values():
            await connection.close()
        self._open.clear()


def _java_address(address: Address) -> str:
    """Return ``name/address:port``, as Java writes it; no name if the host is an address itself."""
    name = "" if _literal(address.host) is not None else address.host
    found = _literal(address.host) or _resolved(address)
    if found is None:
        return f"{address.host}/<unresolved>:{address.port}"
    if isinstance(found, ipaddress.IPv6Address):
        groups = ":".join(f"{int(group, 16):x}" for group in found.exploded.split(":")[:8])
        return f"{name}/[{groups}]:{address.port}"
    return f"{name}/{found}:{address.port}"


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _resolved(address: Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Resolve a name; among several addresses, prefer IPv4, as Java does."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    texts = [str(each[4][0]) for each in sorted(found, key=lambda one: one[0] != socket.AF_INET)]
    return _literal(texts[0]) if texts else None
