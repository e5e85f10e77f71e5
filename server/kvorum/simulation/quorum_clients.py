"""The inhabitants of a world without brokers: clients that write to the quorum, and a stranger."""

from collections.abc import Mapping
from typing import Final

from kvorum.simulation.client import Client
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.stranger import Stranger

ACKNOWLEDGED_WRITES: Final = "acknowledged writes"


class QuorumClients:
    """The clients of a quorum, and a stranger whose requests no node should get."""

    def __init__(self, quorum: SimulatedQuorum) -> None:
        self._around = quorum.around
        self._quorum = quorum
        count = self._around.options.client_count
        self._clients = [Client(quorum, -1 - index) for index in range(count)]
        self._stranger = Stranger(quorum)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of acknowledged writes."""
        return {ACKNOWLEDGED_WRITES: self._around.properties.ledger.acknowledged_count}

    def begin(self) -> None:
        """Begin to write, and to send misdirected requests."""
        around = self._around
        around.trace.say(f"seed {around.seed}: {around.options.describe()}")
        for client in self._clients:
            client.begin()
        self._stranger.begin()

    def settle(self) -> float:
        """Go on writing; the quorum is looked at from now on."""
        return 0.0

    def check_end(self) -> None:
        """Check that every node that runs has the acknowledged writes."""
        around = self._around
        for node in self._quorum.nodes.values():
            if node.process is not None:
                application = node.process.application
                around.properties.ledger.check_state(
                    f"node {node.node_id}", application.values, application.next_offset
                )
        around.trace.say("the end")
