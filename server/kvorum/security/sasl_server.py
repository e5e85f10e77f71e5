"""A mechanism on the server's side: it takes a client's tokens until it knows the user.

::

    SaslError                     the client is not let in, and does not hear why
    └── SaslAuthenticationError   the client is not let in, and its text is for the client
    SaslBrokenError               bytes that no answer is possible to: the connection is closed
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

OTHER_AUTHORIZATION_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class SaslError(Exception):
    """A client that is not let in; the text is not for it."""


class SaslAuthenticationError(SaslError):
    """A client that is not let in, with Kafka's text for it."""


class SaslBrokenError(Exception):
    """Bytes after which the connection is closed at once, without an answer."""


class SaslServer(Protocol):
    """One authentication by one mechanism.

    `authorization_id` is the name of the user, once it is known; None before.
    """

    authorization_id: str | None

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a client's token; raises SaslError or SaslBrokenError."""
        ...


NewSaslServer: TypeAlias = Callable[[], SaslServer]
"""Begins an authentication."""
