"""Whom to ask: any broker, or the active controller, as Kafka's admin client finds them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvorum.cli.admin.addresses import java_address
from kvorum.cli.admin.settings import AdminSettings
from kvorum.metadata.config_definitions import HostPort
from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError

_BACKOFF_BASE = 2
_BACKOFF_JITTER = 0.2
_TIMER_SLACK_MS = 1
"""Java counts whole milliseconds: a deadline has passed one after it is reached."""


@dataclass(frozen=True, slots=True)
class Node:
    """One server; those of the command line have negative ids until they have been asked."""

    node_id: int
    address: HostPort


class Clock:
    """Time in milliseconds: runs evenly, and begins with the time of the day."""

    def __init__(self) -> None:
        self._ahead_ms = time.time() * 1000 - time.monotonic() * 1000

    def now_ms(self) -> int:
        """Return the milliseconds since 1970."""
        return int(self._ahead_ms + time.monotonic() * 1000)

    def left_ms(self, deadline_ms: int) -> int:
        """Return the milliseconds until a deadline, 0 when it has passed."""
        return max(0, deadline_ms - self.now_ms())

    async def pause(self, pause_ms: int, *, deadline_ms: int) -> None:
        """Wait, but not beyond a deadline."""
        left_ms = self.left_ms(deadline_ms) + _TIMER_SLACK_MS
        await asyncio.sleep(min(pause_ms, left_ms) / 1000)


class Backoff:
    """Pauses that grow with every failure, each a little by chance."""

    def __init__(self, settings: AdminSettings, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance

    def pause_ms(self, failures: int) -> int:
        """Return how long to wait after as many failures before this one."""
        settings = self._settings
        if settings.retry_backoff_ms == 0:
            return 0
        grown_ms = settings.retry_backoff_ms * _BACKOFF_BASE ** min(failures, 30)
        spread = self._chance.uniform(1 - _BACKOFF_JITTER, 1 + _BACKOFF_JITTER)
        return int(min(grown_ms, settings.retry_backoff_max_ms) * spread)


class Connections:
    """The connections of one client; the first failure to reach a node is warned of."""

    def __init__(self, settings: AdminSettings, *, clock: Clock, warn: Callable[[str], None]):
        self._settings = settings
        self._clock = clock
        self._warn = warn
        self._open: dict[Node, ClientConnection] = {}
        self._complained: set[Node] = set()

    def is_open(self, node: Node) -> bool:
        """Tell whether a node can be asked at once."""
        connection = self._open.get(node)
        return connection is not None and connection.is_open

    async def to(self, node: Node, *, deadline_ms: int) -> ClientConnection | None:
        """Return a connection to a node, None when there is none to be had."""
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
            if node not in self._complained:
                self._complained.add(node)
                self._warn(
                    f"[AdminClient clientId={settings.client_id}] Connection to node "
                    f"{node.node_id} ({java_address(node.address)}) could not be established. "
                    "Node may not be available."
                )
            return None
        self._open[node] = connection
        return connection

    def in_order(self, nodes: Iterable[Node], chance: random.Random) -> list[Node]:
        """Return nodes in the order to try them: first those that are connected, then by chance."""
        shuffled = list(nodes)
        chance.shuffle(shuffled)
        return sorted(shuffled, key=lambda node: not self.is_open(node))

    async def close(self) -> None:
        """Close every connection."""
        for connection in self._open.values():
            await connection.close()
        self._open.clear()
