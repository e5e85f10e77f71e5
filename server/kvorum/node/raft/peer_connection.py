"""The interface of a connection to another replica."""

from __future__ import annotations

from typing import Protocol, TypeVar

from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)


class PeerConnection(Protocol):
    """A connection to one replica, whose versions are known."""

    def version_for(self, message: type[Message]) -> int:
        """Return the highest common version of a request; raises NoCommonVersionError."""
        ...

    async def request(self, message: Message, kind: type[Response], *, timeout_ms: int) -> Response:
        """Send a request; return its response, of class `kind`. Raises ClientConnectionError."""
        ...
