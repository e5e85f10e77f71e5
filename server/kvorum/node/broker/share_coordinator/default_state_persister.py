"""The way to the coordinators of share partitions (DefaultStatePersister, PersisterStateManager).

What may pass is asked again after a pause that doubles. Kafka begins with two seconds and asks five
times; the time in all is the same.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from kvorum.broker.coordinators import coordinator_of_key
from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.known_error_code import known_error_code
from kvorum.metadata.topic_names import SHARE_GROUP_STATE_TOPIC
from kvorum.node.broker.exponential_backoff import ExponentialBackoff
from kvorum.node.broker.inter_broker_senders import (
    BrokerConnection,
    Connections,
    InterBrokerSenders,
)
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.coroutines import Promise, Wait, all_of, sleep
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.runtime import Runtime
from kvorum.share_coordinator.share_state_queue import (
    ShareStateBatch,
    ShareStateCall,
    ShareStateQueue,
)
from kvorum.share_coordinator.share_state_rpc import (
    DELETE,
    INITIALIZE,
    READ,
    READ_SUMMARY,
    WRITE,
    PartT,
    ResponseT,
    ResultT,
    ShareStateRequest,
    ShareStateRpc,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kvorum.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

ATTEMPTS_MAX: Final = 9
BACKOFF_MS: Final = 50
"""Half of the first pause."""
BACKOFF_MAX_MS: Final = 30_000
PASSING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""The codes upon which a coordinator is looked for and asked again."""


class DefaultStatePersister:
    """Keeps the state of share partitions with their coordinators, wherever these are.

    `listener` is the one that brokers use, and `create_topic` makes an internal topic. The broker
    is `own`, which is asked without a connection. `draw` returns a number from 0 to 1.
    """

    def __init__(
        self,
        connections: Connections,
        own: OwnBroker,
        listener: str,
        *,
        image: Callable[[], MetadataImage],
        create_topic: Callable[[str], Coroutine[Wait[Any], Any, None]],
        draw: Callable[[], float],
        runtime: Runtime,
    ) -> None:
        self._connections = connections
        self._listener = listener
        self._image = image
        self._create_topic = create_topic
        self._backoff = ExponentialBackoff(BACKOFF_MS, BACKOFF_MAX_MS, draw)
        self._runtime = runtime
        self._queues: dict[int, ShareStateQueue] = {}
        self._is_closed = False
        self._senders = InterBrokerSenders(
            connections, own, runtime, take=self._take, ask=self._ask
        )

    def close(self) -> None:
        """Ask no coordinator any more; what waits is refused."""
        self._is_closed = True
        self._senders.close()
        for node_id in self._queues:
            batch = self._take(node_id)
            if batch is not None:
                batch.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    async def initialize_state(
        self, request: InitializeShareGroupStateRequest
    ) -> InitializeShareGroupStateResponse:
        """Begin the state of partitions, or begin it again with a later state epoch."""
        return await self._kept(INITIALIZE, request)

    async def read_state(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        """Read the state of partitions for their new leaders, whose epochs are kept."""
        return await self._kept(READ, request)

    async def write_state(
        self, request: WriteShareGroupStateRequest
    ) -> WriteShareGroupStateResponse:
        """Keep what has changed in partitions."""
        return await self._kept(WRITE, request)

    async def delete_state(
        self, request: DeleteShareGroupStateRequest
    ) -> DeleteShareGroupStateResponse:
        """Forget the state of partitions; what is not known is forgotten already."""
        return await self._kept(DELETE, request)

    async def read_state_summary(
        self, request: ReadShareGroupStateSummaryRequest
    ) -> ReadShareGroupStateSummaryResponse:
        """Read the start offsets of partitions, without changing anything."""
        return await self._kept(READ_SUMMARY, request)

    async def _kept(
        self, rpc: ShareStateRpc[PartT, ResultT, ResponseT], request: ShareStateRequest[PartT]
    ) -> ResponseT:
        parts = dict(rpc.parts(request))
        asked = [self._result(rpc, key, part) for key, part in parts.items()]
        results = await all_of(self._runtime, asked)
        return rpc.response(dict(zip(parts, results, strict=True)))

    async def _result(
        self, rpc: ShareStateRpc[PartT, ResultT, ResponseT], key: SharePartitionKey, part: PartT
    ) -> ResultT:
        """Return the result for a share partition, the last one after all tries."""
        for failure_count in range(1, ATTEMPTS_MAX):
            result = await self._asked(rpc, key, part)
            if result.error_code not in PASSING or self._is_closed:
                break
            await sleep(self._runtime, self._backoff.pause_ms(failure_count))
        else:
            result = await self._asked(rpc, key, part)
        if result.error_code != ErrorCode.NONE:
            result.error_message = _explained(rpc, result.error_code, result.error_message)
        return result

    async def _asked(
        self, rpc: ShareStateRpc[PartT, ResultT, ResponseT], key: SharePartitionKey, part: PartT
    ) -> ResultT:
        """Return what the coordinator answers at this moment."""
        node_id = None if self._is_closed else await self._coordinator_of(key)
        if node_id is None or self._is_closed:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return rpc.new_result(key.partition, code, code.default_message)
        answered: Promise[ResultT] = Promise(self._runtime)
        queue = self._queues.setdefault(node_id, ShareStateQueue())
        queue.add(rpc, key, part, answered.settle)
        self._senders.wake(node_id)
        return await answered.result()

    async def _coordinator_of(self, key: SharePartitionKey) -> int | None:
        """Return the broker that coordinates a share partition; None without one for now."""
        if self._image().topics.by_name(SHARE_GROUP_STATE_TOPIC) is None:
            await self._create_topic(SHARE_GROUP_STATE_TOPIC)
        node = coordinator_of_key(
            self._image(), CoordinatorType.SHARE, key.coordinator_key, self._listener
        )
        return None if node is None else node.node_id

    def _take(self, node_id: int) -> ShareStateBatch | None:
        return self._queues[node_id].take()

    async def _ask(self, connection: BrokerConnection, batch: ShareStateBatch) -> None:
        await all_of(self._runtime, map(partial(self._call, connection), batch.calls))

    async def _call(
        self, connection: BrokerConnection, call: ShareStateCall[Any, Any, Any]
    ) -> None:
        request = call.request
        try:
            version = connection.version_for(type(request))
        except NoCommonVersionError:
            call.fail(ErrorCode.UNSUPPORTED_VERSION)
            return
        response = await connection.send(
            request,
            call.rpc.response_type,
            timeout_ms=self._connections.request_timeout_ms,
            version=version,
        )
        call.on_response(response)


def _explained(
    rpc: ShareStateRpc[PartT, ResultT, ResponseT], code: int, message: str | None
) -> str:
    """Return Kafka's text for an error that is the last one."""
    what = f"{rpc.verb} {rpc.noun} RPC"
    if code in PASSING:
        return f"Error in {what}. Exhausted max retries to complete {what} without success."
    return f"Error in {what}. {message or known_error_code(code).default_message}"
