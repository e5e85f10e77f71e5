"""Sockets of a node's listeners, and the addresses it tells others."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import MappingProxyType

from kvorum.metadata.cluster_image import Endpoint
from kvorum.node.config import Listener
from kvorum.node.errors import NodeStartError
from kvorum.node.serving.listener import PORT_MAX, bind

_PROTOCOL_NUMBERS: Mapping[str, int] = MappingProxyType(
    {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
)
Sockets = Mapping[str, socket.socket]
"""The bound socket of each listener, by its name."""


def bind_listeners(listeners: Iterable[Listener], given: Sockets, closing: ExitStack) -> Sockets:
    """Bind what is not bound yet; all sockets are closed with `closing`. Raises NodeStartError."""
    sockets: dict[str, socket.socket] = {}
    for opened in given.values():
        closing.callback(opened.close)
    for listener in listeners:
        name = listener.name
        if name in given:
            sockets[name] = given[name]
        else:
            sockets[name] = bind(name, listener.host, listener.port)
            closing.callback(sockets[name].close)
    return MappingProxyType(sockets)


def check_advertised(listeners: Iterable[Listener]) -> None:
    """Check that every port told to others is one; raises NodeStartError."""
    for listener in listeners:
        if not 0 <= listener.port <= PORT_MAX:
            raise NodeStartError(
                f"Cannot advertise {listener.name}://{listener.host or ''}:{listener.port}: there "
                f"is no port {listener.port}. Correct 'advertised.listeners'"
            )


def advertised_endpoints(listeners: Iterable[Listener], sockets: Sockets) -> tuple[Endpoint, ...]:
    """Return where others reach these listeners: with this machine's name, and with real ports."""
    return tuple(
        Endpoint(
            listener=listener.name,
            host=listener.host or socket.getfqdn(),
            port=listener.port or bound_port(sockets, listener.name),
            security_protocol=_PROTOCOL_NUMBERS[listener.protocol.value],
        )
        for listener in listeners
    )


def bound_port(sockets: Sockets, name: str) -> int:
    """Return the port that the listener called `name` is bound to."""
    port = sockets[name].getsockname()[1]
    assert isinstance(port, int)
    return port
