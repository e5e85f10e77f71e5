"""Sends dead letters to the leaders of their queues, those that wait for one leader together."""

from kvorum.broker.dead_letter_queue.produce_queue import (
    DeadLetterBatch,
    ProduceCall,
    ProduceQueue,
    ProduceResult,
)
from kvorum.node.broker.inter_broker_senders import (
    BrokerConnection,
    Connections,
    InterBrokerSenders,
)
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.coroutines import Promise
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse


class DeadLetterSender:
    """Has one request under way to each broker; the broker itself is `own`."""

    def __init__(self, connections: Connections, own: OwnBroker, runtime: Runtime) -> None:
        self._connections = connections
        self._runtime = runtime
        self._queues: dict[int, ProduceQueue] = {}
        self._is_closed = False
        self._senders = InterBrokerSenders(
            connections, own, runtime, take=self._take, ask=self._ask
        )

    @property
    def is_closed(self) -> bool:
        """Whether nothing is sent any more."""
        return self._is_closed

    def close(self) -> None:
        """Send nothing any more; what waits has the result NETWORK_EXCEPTION."""
        self._is_closed = True
        self._senders.close()
        for node_id in self._queues:
            while (call := self._take(node_id)) is not None:
                call.fail(ErrorCode.NETWORK_EXCEPTION)

    async def send(self, broker_id: int, batch: DeadLetterBatch) -> ProduceResult:
        """Return the result of a batch, once it is there."""
        if self._is_closed:
            return ProduceResult(ErrorCode.NETWORK_EXCEPTION)
        answered: Promise[ProduceResult] = Promise(self._runtime)
        self._queues.setdefault(broker_id, ProduceQueue()).add(batch, answered.settle)
        self._senders.wake(broker_id)
        return await answered.result()

    def _take(self, broker_id: int) -> ProduceCall | None:
        return self._queues[broker_id].take()

    async def _ask(self, connection: BrokerConnection, call: ProduceCall) -> None:
        try:
            version = connection.version_for(ProduceRequest)
        except NoCommonVersionError:
            call.fail(ErrorCode.UNSUPPORTED_VERSION)
            return
        response = await connection.send(
            call.request,
            ProduceResponse,
            timeout_ms=self._connections.request_timeout_ms,
            version=version,
        )
        call.on_response(response)
