"""The requests between simulated nodes: real frames, encoded and decoded by the node's code.

`simulation.requests` cannot take their place: these agree on a version with the other release, wait
by their own node's clock, which drifts and pauses, and fail at once where the other process ends.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Protocol, TypeAlias, TypeVar

from kvorum.node.outbound.client_connection import (
    ClientConnectionError,
    ConnectionLostError,
    NobodyListensError,
    NoCommonVersionError,
    RequestTimedOutError,
)
from kvorum.node.raft.outbound_requests import PeerResult, ask
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.runtime import Timer
from kvorum.raft import messages as core
from kvorum.raft.effects import Send
from kvorum.simulation.network import OnReply, Reply
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.simulation.versions import Release, common_version
from kvorum.wire.errors import WireError
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)
_Asking: TypeAlias = Coroutine[None, bytes | None, PeerResult]


class Wire(Protocol):
    """The world as the links of a process use it."""

    def carry_request(self, host: str, message: Message, frame: bytes, reply: OnReply) -> None:
        """Carry a request to the node at an address; `reply` may come later, twice, or never."""
        ...

    def tell_sent(self, send: Send) -> None:
        """Note a request that is sent."""
        ...

    def tell_result(self, send: Send, result: PeerResult) -> None:
        """Note the result of a request."""
        ...


class _Answer:
    """The wait for the reply to one frame, in a coroutine that the simulation drives."""

    def __await__(self) -> Generator[None, bytes, bytes]:
        return (yield)


class _Connection:
    """The connection over which `ask` sends its request."""

    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange

    def version_for(self, message: type[Message]) -> int:
        return self._exchange.version_for(message)

    async def request(self, message: Message, kind: type[Response], *, timeout_ms: int) -> Response:
        version = self.version_for(type(message))
        self._exchange.send_frame(message, version=version, timeout_ms=timeout_ms)
        return decode_response_frame(await _Answer(), response_class=kind, version=version)[1]


class SimulatedLinks:
    """One process's links to the other nodes.

    `release_of` returns the release of the node at an address.
    """

    def __init__(
        self,
        settings: RaftSettings,
        runtime: SimulatedRuntime,
        *,
        release: Release,
        release_of: Callable[[str], Release],
        wire: Wire,
        on_result: Callable[[int, PeerResult], None],
    ) -> None:
        self.settings = settings
        self.runtime = runtime
        self.release = release
        self.release_of = release_of
        self.wire = wire
        self.on_result = on_result
        self._under_way: dict[int, _Exchange] = {}

    def send(self, send: Send) -> None:
        """Send a request."""
        exchange = _Exchange(self, send)
        self._under_way[send.number] = exchange
        self.wire.tell_sent(send)
        exchange.begin()

    def peer_ended(self, host: str) -> None:
        """Note that the process at an address has ended: requests to it fail at once."""
        self._fail_all(host, NobodyListensError(f"nobody listens at {host}"))

    def reset(self, host: str) -> None:
        """Lose the connection to an address."""
        self._fail_all(host, ConnectionLostError(f"the connection to {host} broke"))

    def _fail_all(self, host: str, error: ClientConnectionError) -> None:
        for exchange in list(self._under_way.values()):
            if exchange.host == host:
                exchange.take(error)

    def finish(self, send: Send, result: PeerResult) -> None:
        """Pass on the result of a request."""
        del self._under_way[send.number]
        self.wire.tell_result(send, result)
        self.on_result(send.number, result)


class _Exchange:
    def __init__(self, links: SimulatedLinks, send: Send) -> None:
        self.host = send.destination.host
        self._links = links
        self._send = send
        self._is_done = False
        self._timer: Timer | None = None
        self._coroutine: _Asking = ask(_Connection(self), send.request, settings=links.settings)

    def begin(self) -> None:
        """Write the request and send it."""
        try:
            self._coroutine.send(None)
        except ClientConnectionError as error:
            # The call that sends a request never reports its result itself.
            problem = error
            self._timer = self._links.runtime.call_after(0.0, lambda: self.take(problem))

    def version_for(self, message: type[Message]) -> int:
        """Return the highest version that both sides support."""
        return common_version(message, self._links.release, self._links.release_of(self.host))

    def send_frame(self, message: Message, *, version: int, timeout_ms: int) -> None:
        """Send a frame, and wait at most `timeout_ms` for its reply."""
        frame = encode_request_frame(
            message, version=version, correlation_id=self._send.number, client_id="raft"
        )
        late = RequestTimedOutError(f"no response to {message.NAME} in time")
        self._timer = self._links.runtime.call_after(timeout_ms, lambda: self.take(late))
        self._links.wire.carry_request(self.host, message, frame, self.take)

    def take(self, reply: Reply) -> None:
        """Take the first reply or failure; ignore later ones."""
        if self._is_done:
            return
        self._is_done = True
        if self._timer is not None:
            self._timer.cancel()
        self._links.finish(self._send, self._result(reply))

    def _result(self, reply: Reply) -> PeerResult:
        if isinstance(reply, ClientConnectionError):
            self._coroutine.close()
            return failed(reply)
        try:
            self._coroutine.send(reply)
        except StopIteration as done:
            result: PeerResult = done.value
            return result
        except (ClientConnectionError, WireError) as error:
            return failed(error)
        raise TypeError("a request with two replies")


def failed(error: ClientConnectionError | WireError) -> PeerResult:
    """Return the result that the driver gets for a request without a response."""
    return PeerResult(
        core.RequestFailed(
            str(error),
            lacks_version=isinstance(error, NoCommonVersionError),
            is_peer_gone=isinstance(error, NobodyListensError),
        )
    )
