"""Connections from one simulated broker to others, for requests that several parts of it send."""

from typing import Final, TypeVar

from kvorum.node.coroutines import other_work
from kvorum.node.handlers.registry import broker_api_versions
from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.node.runtime import Runtime
from kvorum.simulation.network import OnReply
from kvorum.simulation.partitions.broker_machine import BrokerMachine
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.closing_connection import ClosingConnection
from kvorum.simulation.requests import OnAnswer, answer
from kvorum.transactions.transaction_metadata import EPOCH_OF_EACH_TRANSACTION
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from kvorum.wire.primitives import Message

REQUEST_TIMEOUT_MS: Final = 200
"""The time in which a broker has to answer another one."""
Response = TypeVar("Response", bound=Message)


class SimulatedConnections:
    """The connections of one process of a broker, of one kind of requests."""

    def __init__(
        self,
        client_id: str,
        broker_id: int,
        around: BrokerSurroundings,
        machine: BrokerMachine,
        runtime: Runtime,
    ) -> None:
        self.client_id = client_id
        self.request_timeout_ms = REQUEST_TIMEOUT_MS
        self._broker_id = broker_id
        self._around = around
        self._machine = machine
        self._runtime = runtime

    async def to(self, node_id: int) -> "SimulatedConnection":
        """Return a connection to a broker, which is there in a moment."""
        await other_work(self._runtime)
        link = self._broker_id, node_id
        return SimulatedConnection(self.client_id, link, self._around, self._machine)

    def close(self) -> None:
        """Do nothing: each request has a connection of its own."""


class SimulatedConnection:
    """A connection to a broker.

    A request is handled once, and not after its connection was given up: in Kafka as here, a late
    marker of a transaction without an epoch of its own would end the next one, and a late state of
    a share partition would take the place of those after it. Others may be late, and come twice.
    The end of a process gives nothing up: the next coordinator has another epoch.
    """

    def __init__(
        self,
        client_id: str,
        link: tuple[int, int],
        around: BrokerSurroundings,
        machine: BrokerMachine,
    ) -> None:
        """`link` has the ids of the two brokers."""
        self.client_id = client_id
        self.peer_versions = broker_api_versions()
        self._link = link
        self._around = around
        self._machine = machine

    def version_for(self, message: type[Message]) -> int:
        """Return the highest version of a request, as all brokers are of one release."""
        assert message.API_KEY is not None
        return self.peer_versions[message.API_KEY][1]

    async def send(
        self, message: Message, kind: type[Response], *, timeout_ms: int, version: int | None = None
    ) -> Response:
        """Send a request; return its response. Raises ConnectionLostError where none comes."""
        around = self._around
        connection = ClosingConnection(around, self._link[1])
        may_be_late = _may_be_late(message)
        is_over = False

        def ask(on_answer: OnAnswer) -> None:
            guarded = self._machine.guard_reply(on_answer)

            def end(answered: Message | None) -> None:
                nonlocal is_over
                is_over = True
                guarded(answered)

            is_handled = False

            def serve(frame: bytes, reply: OnReply) -> None:
                nonlocal is_handled
                if may_be_late or not (is_over or is_handled):
                    is_handled = True
                    connection.serve(frame, reply)

            around.requests.ask(
                self._link,
                message,
                serve,
                connection.passing_on(end),
                timeout_ms=timeout_ms,
                version=version,
            )

        answered: Response = await answer(kind, ask, ConnectionLostError("the connection broke"))
        return answered


def _may_be_late(message: Message) -> bool:
    """Return whether a request does no harm after its connection was given up."""
    if isinstance(message, InitializeShareGroupStateRequest | WriteShareGroupStateRequest):
        return False
    if not isinstance(message, WriteTxnMarkersRequest):
        return True
    return all(one.transaction_version >= EPOCH_OF_EACH_TRANSACTION for one in message.markers)
