"""A session: the client of a connection, as each of its requests has it."""

from typing import Final, NamedTuple

from kvorum.metadata.standard_authorizer import USER_TYPE, Principal
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.security.security_protocol import SecurityProtocol

UNAUTHENTICATED: Final = Principal(USER_TYPE, "")
"""The principal of a client that SASL has not authenticated yet: no user has an empty name."""


class Session(NamedTuple):
    """A client on a listener, from its authentication on.

    All requests of a connection share one. A request in an Envelope has its own:
    with the client at the broker, and the listener that the Envelope came to. `disconnect` has
    those who act when the connection ends; None where the client has no connection of its own here.
    """

    listener: str
    protocol: SecurityProtocol
    client_host: str
    principal: Principal
    is_forwarded: bool = False
    disconnect: DisconnectListeners | None = None

    @property
    def is_authenticated(self) -> bool:
        """Whether the client is known; before that, it may ask for ApiVersions alone."""
        return self.principal != UNAUTHENTICATED
