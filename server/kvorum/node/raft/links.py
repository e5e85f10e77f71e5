"""The links of a replica, by which the core's requests go to other replicas."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kvorum.node.raft.outbound_requests import PeerResult
from kvorum.raft.effects import Send


class Links(Protocol):
    """Connections to other replicas."""

    def send(self, send: Send) -> None:
        """Send a request; its result is reported once, with its number."""
        ...


Connect: TypeAlias = Callable[[Callable[[int, PeerResult], None]], Links]
"""Creates the links of a replica, given the callback for results of requests."""
