"""Requests from this broker to others, one at a time to each (Kafka's InterBrokerSendThread)."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.coroutines import Task, Wait, other_work
from kvorum.node.events.log_event import LogEvent
from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)
_log = logging.getLogger(__name__)


class Batch(Protocol):
    """The content of one request, for several who wait for its answer."""

    def fail(self, code: ErrorCode, /) -> None:
        """Answer those with an error that have no answer yet."""
        ...


BatchT = TypeVar("BatchT", bound=Batch)


class BrokerConnection(Protocol):
    """A connection to a broker."""

    @property
    def client_id(self) -> str:
        """The client id of its requests."""
        ...

    @property
    def peer_versions(self) -> Mapping[int, tuple[int, int]]:
        """The lowest and highest version of each API key that the broker offers."""
        ...

    def version_for(self, message: type[Message], /) -> int:
        """Return the highest common version of a request; raises NoCommonVersionError."""
        ...

    async def send(
        self, message: Message, kind: type[Response], *, timeout_ms: int, version: int | None = None
    ) -> Response:
        """Send a request; return its response, of a kind. Raises ClientConnectionError."""
        ...


class Connections(Protocol):
    """The connections to brokers, of one kind of requests."""

    @property
    def client_id(self) -> str:
        """The client id of the requests."""
        ...

    @property
    def request_timeout_ms(self) -> int:
        """The time in which a broker has to answer."""
        ...

    async def to(self, node_id: int, /) -> BrokerConnection:
        """Return the connection to a broker; raises ClientConnectionError without one."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class InterBrokerSenders(Generic[BatchT]):
    """Sends what waits for each broker; one request is under way to it.

    `take` returns what waits for a broker, None for nothing, and `ask` asks it over a connection.
    Nothing is sent to the broker itself: `own` answers it.
    """

    def __init__(
        self,
        connections: Connections,
        own: OwnBroker,
        runtime: Runtime,
        *,
        take: Callable[[int], BatchT | None],
        ask: Callable[[BrokerConnection, BatchT], Coroutine[Wait[Any], Any, None]],
    ) -> None:
        self._connections = connections
        self._own = own
        self._runtime = runtime
        self._take = take
        self._ask = ask
        self._tasks: dict[int, Task[None]] = {}

    def wake(self, node_id: int) -> None:
        """Send all that waits for a broker, as soon as nothing is under way to it."""
        if node_id not in self._tasks:
            self._tasks[node_id] = Task(self._send(node_id), partial(self._sent, node_id))

    def close(self) -> None:
        """End what is under way, and close all connections."""
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()
        self._connections.close()

    def _sent(self, node_id: int, _: Exception | None) -> None:
        self._tasks.pop(node_id, None)

    async def _send(self, node_id: int) -> None:
        """Ask a broker until nothing waits for it."""
        # Questions of the same turn are asked together.
        await other_work(self._runtime)
        while (batch := self._take(node_id)) is not None:
            try:
                await self._ask(await self._connection_to(node_id), batch)
            except ClientConnectionError as error:
                _log.warning(
                    LogEvent(
                        "A broker did not answer",
                        broker=node_id,
                        client=self._connections.client_id,
                        error=str(error),
                    )
                )
            except Exception:  # noqa: BLE001 - logged
                # Later questions have to be asked all the same.
                _log.exception("An unexpected error in a request to another broker")
                batch.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            finally:
                batch.fail(ErrorCode.NETWORK_EXCEPTION)

    async def _connection_to(self, node_id: int) -> BrokerConnection:
        if node_id == self._own.broker_id:
            return self._own
        return await self._connections.to(node_id)
