"""A mechanism on the client's side: it takes a server's tokens until the client is let in."""

from typing import Protocol

from kvorum.security.renewable import RenewalFailedError


class SaslServerError(Exception):
    """A server that does not keep to the mechanism, or does not know the user's password."""


class LoginFailedError(RenewalFailedError):
    """A client that has nothing to log in with; the text is that of Kafka's LoginException."""


class SaslClient(Protocol):
    """One authentication by one mechanism."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to send."""
        ...

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a server's token, the first of which is empty.

        The answer does not count once the client is complete. Raises SaslServerError.
        """
        ...
