"""A request in the form that handlers receive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from kvorum.metadata.principal import ANONYMOUS, Principal
from kvorum.metadata.standard_authorizer import UNRESTRICTED, Access
from kvorum.node.serving.request_progress import RequestProgress
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message

Request_co = TypeVar("Request_co", bound=Message, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingRequest(Generic[Request_co]):
    """A request with its header, its client and its listener.

    `frame` has the original header and body, to be forwarded. `client_host` is the address of the
    client, even if a broker forwarded the request. `access` decides what the principal may do.
    """

    header: RequestHeader
    body: Request_co
    frame: bytes
    listener: str
    client_host: str
    progress: RequestProgress
    principal: Principal = ANONYMOUS
    is_forwarded: bool = False
    access: Access = UNRESTRICTED

    @property
    def version(self) -> int:
        """The version of the request."""
        return self.header.request_api_version
