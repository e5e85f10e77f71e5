"""The way of a broker's requests to itself: to its handlers, without a socket or a frame."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED
from kvorum.node.coroutines import Wait, in_time
from kvorum.node.outbound.client_connection import RequestTimedOutError
from kvorum.node.runtime import Runtime
from kvorum.node.serving.request import IncomingRequest, RequestProgress
from kvorum.node.serving.request_handler import HandlerResponse
from kvorum.node.serving.session import Session
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message

LOOPBACK: Final = "127.0.0.1"
_NO_CORRELATION: Final = 0
Response = TypeVar("Response", bound=Message)
Handle = Callable[[IncomingRequest[Message]], Coroutine[Wait[Any], Any, HandlerResponse]]
"""Returns the response to a request, as `RequestHandler.handle` does."""


class OwnBroker:
    """A connection from a broker to itself, where nothing is refused for want of permission.

    `listener` is the one that brokers use, and `peer_versions` the lowest and highest version of
    each API key that the broker serves.
    """

    def __init__(
        self,
        broker_id: int,
        listener: str,
        peer_versions: Mapping[int, tuple[int, int]],
        *,
        handle: Handle,
        runtime: Runtime,
    ) -> None:
        self.broker_id = broker_id
        self.client_id = f"broker-{broker_id}"
        self.peer_versions = peer_versions
        self._session = Session(listener, SecurityProtocol.PLAINTEXT, LOOPBACK, ANONYMOUS)
        self._handle = handle
        self._runtime = runtime

    def version_for(self, message: type[Message]) -> int:
        """Return the highest version of a request."""
        assert message.API_KEY is not None
        return self.peer_versions[message.API_KEY][1]

    async def send(
        self, message: Message, kind: type[Response], *, timeout_ms: int, version: int | None = None
    ) -> Response:
        """Return the response to a request.

        Raises RequestTimedOutError after `timeout_ms`: the request ends as with its connection.
        """
        if version is None:
            version = self.version_for(type(message))
        assert message.API_KEY is not None
        request = IncomingRequest(
            header=RequestHeader(message.API_KEY, version, _NO_CORRELATION, self.client_id),
            body=message,
            frame=b"",
            progress=RequestProgress(self._runtime),
            session=self._session,
            access=UNRESTRICTED,
        )
        late = RequestTimedOutError(
            f"broker {self.broker_id} has not answered itself in {timeout_ms} ms"
        )
        response = await in_time(self._runtime, self._handle(request), timeout_ms, late)
        assert isinstance(response, kind)
        return response
