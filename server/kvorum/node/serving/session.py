"""A session: the client of a connection, as each of its requests has it."""

from typing import NamedTuple

from kvorum.metadata.standard_authorizer import Principal
from kvorum.node.config import SecurityProtocol


class Session(NamedTuple):
    """A client on a listener, from its authentication on.

    All requests of a connection share one. A request in an Envelope has its own:
    with the client at the broker, and the listener that the Envelope came to.
    """

    listener: str
    protocol: SecurityProtocol
    client_host: str
    principal: Principal
    is_forwarded: bool = False
