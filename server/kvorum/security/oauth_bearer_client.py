"""OAUTHBEARER (RFC 7628, KIP-255) on the client's side: a token, perhaps with extensions."""

from collections.abc import Mapping
from typing import Final

from kvorum.security.oauth_bearer_messages import client_message
from kvorum.security.sasl_client import SaslServerError

_GIVEN_UP: Final = b"\x01"
"""The answer to a server that says why the token is refused; its error comes then."""


class OAuthBearerClient:
    """Sends a token; the server has nothing to say to a good one."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        self._message = client_message(token, extensions)
        self._has_sent = False
        self.is_complete = False

    def evaluate(self, token: bytes) -> bytes:
        """Return the message, or the answer to a refusal; raises SaslServerError."""
        if self._has_sent:
            self.is_complete = not token
            return _GIVEN_UP
        if token:
            raise SaslServerError("Expected empty challenge")
        self._has_sent = True
        return self._message
