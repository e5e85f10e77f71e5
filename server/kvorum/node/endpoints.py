"""The sockets of a node's listeners, and the addresses that it advertises."""

import socket
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import MappingProxyType

from kvorum.metadata.cluster_image import Endpoint
from kvorum.node.config import Listener
from kvorum.node.errors import NodeStartError
from kvorum.node.serving.socket_server import PORT_MAX, bind
from kvorum.node.sockets import close_listening

_PROTOCOL_NUMBERS: Mapping[str, int] = MappingProxyType(
    {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
)
Sockets = Mapping[str, socket.socket]
"""The bound socket of each listener, by its name."""


def bind_listeners(listeners: Iterable[Listener], given: Sockets, closing: ExitStack) -> Sockets:
    """Bind the listeners without a socket; `closing` closes all. Raises NodeStartError."""
    sockets: dict[str, socket.socket] = {}
    for opened in given.values():
        closing.callback(close_listening, opened)
    for listener in listeners:
        name = listener.name
        if name in given:
            sockets[name] = given[name]
        else:
            sockets[name] = bind(name, listener.host, listener.port)
            closing.callback(close_listening, sockets[name])
    return MappingProxyType(sockets)


def check_advertised(listeners: Iterable[Listener]) -> None:
    """Check that every advertised port is a valid one; raises NodeStartError."""
    for listener in listeners:
        if not 0 <= listener.port <= PORT_MAX:
            raise NodeStartError(
                f"Cannot advertise {listener}: there is no port {listener.port}. Correct "
                "'advertised.listeners'"
            )


def advertised_endpoints(listeners: Iterable[Listener], sockets: Sockets) -> tuple[Endpoint, ...]:
    """Return the advertised endpoints: with this machine's name, and with the bound ports."""
    return tuple(
        Endpoint(
            listener=listener.name,
            host=listener.host or socket.getfqdn(),
            port=listener.port or port_of(sockets[listener.name]),
            security_protocol=_PROTOCOL_NUMBERS[listener.protocol.value],
        )
        for listener in listeners
    )


def port_of(bound: socket.socket) -> int:
    """Return the port that a socket is bound to."""
    port = bound.getsockname()[1]
    assert isinstance(port, int)
    return port
