"""PLAIN (RFC 4616) on the server's side: the users stand in a listener's settings."""

from collections.abc import Mapping
from hmac import compare_digest
from typing import Final

from kvorum.security.sasl_server import (
    OTHER_AUTHORIZATION_ID,
    AuthenticatedUser,
    SaslAuthenticationError,
)
from kvorum.wire.primitives import decode_with_replacement

_PARTS: Final = 3
_SEPARATOR: Final = "\0"


class PlainServer:
    """Authenticates a client by one token: authorization id, user and password.

    `passwords` are by user.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user: AuthenticatedUser | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return no bytes for a user with the right password; raises SaslAuthenticationError."""
        # As in Kafka, what follows the third separator is one part.
        parts = decode_with_replacement(token).split(_SEPARATOR, _PARTS)
        if len(parts) != _PARTS:
            raise SaslAuthenticationError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise SaslAuthenticationError("Authentication failed: username not specified")
        if not password:
            raise SaslAuthenticationError("Authentication failed: password not specified")
        if not self._is_right(user, password):
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in {"", user}:
            raise SaslAuthenticationError(OTHER_AUTHORIZATION_ID)
        self.user = AuthenticatedUser(user)
        return b""

    def _is_right(self, user: str, password: str) -> bool:
        """Compare in a time that does not depend on where the passwords differ."""
        given = password.encode()
        expected = self._passwords.get(user)
        # An unknown user costs a comparison as well.
        is_equal = compare_digest(given, given if expected is None else expected.encode())
        return is_equal and expected is not None
