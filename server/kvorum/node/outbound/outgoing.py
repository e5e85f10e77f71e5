"""The opener of a node's connections: it opens every connection to another node."""

from collections.abc import Iterable
from weakref import WeakSet

from kvorum.metadata.address import Address
from kvorum.metadata.image import MetadataImage
from kvorum.node.outbound.client_connection import ClientConnection, ConnectFailedError


class Outgoing:
    """Opens connections, except to addresses that are cut off: tests partition clusters with it."""

    def __init__(self) -> None:
        self._cut_off: frozenset[Address] = frozenset()
        self._opened: WeakSet[ClientConnection] = WeakSet()

    async def open(self, address: Address, *, client_id: str, timeout_ms: int) -> ClientConnection:
        """Open a connection as `ClientConnection.open` does; raises ClientConnectionError."""
        self._check(address)
        connection = await ClientConnection.open(
            host=address.host, port=address.port, client_id=client_id, timeout_ms=timeout_ms
        )
        try:
            self._check(address)
        except ConnectFailedError:
            connection.abort()
            raise
        self._opened.add(connection)
        return connection

    def cut_off(self, addresses: Iterable[Address]) -> None:
        """Refuse connections to these addresses, and only these; all open ones are closed."""
        self._cut_off = frozenset(addresses)
        for connection in list(self._opened):
            connection.abort()

    def _check(self, address: Address) -> None:
        if address in self._cut_off:
            raise ConnectFailedError(f"{address} is cut off")


def address_of_broker(image: MetadataImage, broker_id: int, listener: str) -> Address:
    """Return the address of a broker on a listener; raises ConnectFailedError without one."""
    broker = image.cluster.brokers.get(broker_id)
    endpoint = None if broker is None else broker.endpoint(listener)
    if endpoint is None:
        raise ConnectFailedError(f"broker {broker_id} has no listener {listener}")
    return Address(endpoint.host, endpoint.port)
