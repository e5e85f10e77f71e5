"""SASL PLAIN (RFC 4616) on the client's side: a user and a password, in one token."""


class PlainClient:
    """Sends the name of a user, which is that of the authorization too, and the password."""

    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode()
        self.is_complete = False

    def evaluate(self, token: bytes) -> bytes:  # noqa: ARG002 - the server has nothing to say
        """Return the only token."""
        self.is_complete = True
        return self._token
