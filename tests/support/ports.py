"""Ports for nodes that the tests start: free when chosen, and kept until they listen."""

import os
import secrets
import socket
from contextlib import suppress
from functools import cache
from typing import Final

LISTENING_PORTS: Final = range(10_000, 20_000)
"""Below the range from which systems take the ports of outgoing connections; embedded nodes take
ports from 20,000 on.

A node binds its port a while after it was chosen, and one that is down for a moment must find its
port free again: no connection of another program may get it meanwhile.
"""


@cache
def _ports_left() -> list[int]:
    """Return the ports that this process may still give out, in a random order.

    Test processes that run side by side share them out, and none is given out twice.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = list(LISTENING_PORTS[worker :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))])
    secrets.SystemRandom().shuffle(ports)
    return ports


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address on which no program listens now."""
    found: list[int] = []
    while len(found) < count:
        port = _ports_left().pop()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def listens(address: str) -> bool:
    """Return whether connections are accepted there."""
    host, _, port = address.partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex((host, int(port))) == 0
