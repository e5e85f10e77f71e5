"""What is needed of a connection to another replica."""

from __future__ import annotations

from typing import Protocol, TypeVar

from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)


class PeerConnection(Protocol):
    """A way to put requests to one replica; both sides have agreed on versions."""

    def version_for(self, message: type[Message]) -> int:
        """Return the highest version both sides have; raises NoCommonVersionError."""
        ...

    async def request(self, message: Message, kind: type[Response], *, timeout_ms: int) -> Response:
        """Send a request; return its response, of class `kind`. Raises ClientConnectionError."""
        ...
