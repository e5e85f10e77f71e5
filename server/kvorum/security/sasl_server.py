"""A mechanism on the server's side: it takes a client's tokens until it knows the user.

::

    SaslError                     the client is not let in, and does not hear why
    └── SaslAuthenticationError   the client is not let in, and its text is for the client
    SaslBrokenError               bytes that no answer is possible to: the connection is closed
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

OTHER_AUTHORIZATION_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class SaslError(Exception):
    """A client that is not let in; the text is not for it."""


class SaslAuthenticationError(SaslError):
    """A client that is not let in, with Kafka's text for it."""


class SaslBrokenError(Exception):
    """Bytes after which the connection is closed at once, without an answer."""


class AuthenticatedUser(NamedTuple):
    """The user that a mechanism has authenticated, by a credential that may expire.

    `expires_at_ms` is in milliseconds since 1970, None for a credential without an end.
    `is_by_token` holds for the owner of the delegation token that a client came with.
    """

    name: str
    expires_at_ms: int | None = None
    is_by_token: bool = False


class SaslServer(Protocol):
    """One authentication by one mechanism; `user` is None until it is known."""

    user: AuthenticatedUser | None

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a client's token; raises SaslError or SaslBrokenError."""
        ...


NewSaslServer: TypeAlias = Callable[[], SaslServer]
"""Begins an authentication."""


class SaslMechanism(NamedTuple):
    """A mechanism of a listener; a session lasts `session_ms_max`, without an end for 0 or less."""

    begin: NewSaslServer
    session_ms_max: int = 0
