"""The client of a request, as the decisions on delegation tokens need it."""

from __future__ import annotations

from kvorum.controller.api import Requester
from kvorum.metadata.principal import ANONYMOUS
from kvorum.node.config import NodeConfig, SecurityProtocol
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.primitives import Message


def requester_of(request: IncomingRequest[Message], config: NodeConfig) -> Requester:
    """Return the client of `request`."""
    return Requester(
        principal=request.principal,
        access=request.access,
        api_version=request.version,
        may_ask_about_tokens=may_ask_about_tokens(request, config),
    )


def may_ask_about_tokens(request: IncomingRequest[Message], config: NodeConfig) -> bool:
    """Return whether the client has authenticated in a way that permits requests about tokens.

    A controller trusts a broker to forward only clients that have.
    """
    if request.principal.is_token_authenticated:
        return False
    if request.is_forwarded:
        return True
    listeners = config.bound_listeners
    protocol = next(each.protocol for each in listeners if each.name == request.listener)
    return protocol is not SecurityProtocol.PLAINTEXT and (
        protocol is not SecurityProtocol.SSL or not request.principal.is_same_user(ANONYMOUS)
    )
