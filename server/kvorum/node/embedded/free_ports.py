"""Ports for nodes that may come back to them after their process has ended."""

import random
import socket
from contextlib import suppress
from typing import Final

from kvorum.node.errors import NodeStartError
from kvorum.node.serving.socket_server import bind

LOOPBACK: Final = "127.0.0.1"
LISTENING_PORTS: Final = range(20_000, 32_000)
"""They lie below the ports that systems give to connections: a stopped node finds its port free."""
ATTEMPTS: Final = 50


def bind_anywhere(name: str) -> socket.socket:
    """Return a socket for the listener called `name`, bound to a free port of the loopback address.

    The port is one of `LISTENING_PORTS`, or one of the system's choice where those are taken.
    """
    for port in random.SystemRandom().sample(LISTENING_PORTS, ATTEMPTS):
        with suppress(NodeStartError):
            return bind(name, LOOPBACK, port)
    return bind(name, LOOPBACK, 0)
