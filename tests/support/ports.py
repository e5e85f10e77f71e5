"""Ports for nodes that the tests start: free when chosen, and kept until they listen."""

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
BLOCK_PORTS: Final = 50
"""The ports that a test process claims at once. It keeps the first of them bound as long as it
lives, so that no other one gives out the rest, be it of this run or of one beside it."""


class _Claims:
    """The ports that this process may give out, none of them twice."""

    def __init__(self) -> None:
        self._blocks = list(LISTENING_PORTS[::BLOCK_PORTS])
        secrets.SystemRandom().shuffle(self._blocks)
        self._bound: list[socket.socket] = []
        self._left: list[int] = []

    def next_port(self) -> int:
        while not self._left:
            self._claim(self._blocks.pop())
        return self._left.pop()

    def _claim(self, first: int) -> None:
        """Claim a block of ports, unless another process has it."""
        claim = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            claim.bind(("127.0.0.1", first))
        except OSError:
            claim.close()
            return
        self._bound.append(claim)
        self._left.extend(range(first + 1, first + BLOCK_PORTS))


@cache
def _claims() -> _Claims:
    return _Claims()


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address on which no program listens now.

    No other test process gives them out as long as this one lives.
    """
    found: list[int] = []
    while len(found) < count:
        port = _claims().next_port()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def listens(address: str) -> bool:
    """Return whether connections are accepted there."""
    host, _, port = address.partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex((host, int(port))) == 0
