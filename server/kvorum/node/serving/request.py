"""One request as a handler gets it."""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.metadata.access import UNRESTRICTED, Access
from kvorum.metadata.principal import ANONYMOUS, Principal
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingRequest:
    """A request with all that is known about how it came.

    `frame` is header and body as they came, for passing on. `client_host` is the address of the
    client, also of one whose request a broker forwarded. `access` tells what the principal may do.
    """

    header: RequestHeader
    body: Message
    frame: bytes
    listener: str
    client_host: str
    principal: Principal = ANONYMOUS
    is_forwarded: bool = False
    access: Access = UNRESTRICTED

    @property
    def version(self) -> int:
        """The version of the API that the request is written in."""
        return self.header.request_api_version
