"""The way out of a node: every connection that it opens to another node is opened here."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakSet

from kvorum.node.outbound.client_connection import ClientConnection, ConnectFailedError


class Outgoing:
    """Opens connections, but none to an address that is cut off: so tests part a cluster."""

    def __init__(self) -> None:
        self._cut_off: frozenset[tuple[str, int]] = frozenset()
        self._opened: WeakSet[ClientConnection] = WeakSet()

    async def open(
        self, *, host: str, port: int, client_id: str, timeout_ms: int
    ) -> ClientConnection:
        """Open a connection as `ClientConnection.open` does; raises ClientConnectionError."""
        self._check(host, port)
        connection = await ClientConnection.open(
            host=host, port=port, client_id=client_id, timeout_ms=timeout_ms
        )
        try:
            self._check(host, port)
        except ConnectFailedError:
            connection.abort()
            raise
        self._opened.add(connection)
        return connection

    def cut_off(self, addresses: Iterable[tuple[str, int]]) -> None:
        """Refuse connections to these addresses, and only these; all that are open are ended."""
        self._cut_off = frozenset(addresses)
        for connection in list(self._opened):
            connection.abort()

    def _check(self, host: str, port: int) -> None:
        if (host, port) in self._cut_off:
            raise ConnectFailedError(f"{host}:{port} is cut off")
