"""OAUTHBEARER (RFC 7628, KIP-255) on the server's side, with a check of tokens by others."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from kvorum.security.oauth_bearer_messages import ClientResponse, OAuthBearerSyntaxError
from kvorum.security.sasl_server import AuthenticatedUser, SaslAuthenticationError, SaslError

_GIVEN_UP: Final = b"\x01"
"""The message of a client that has read why its token was refused."""
_INVALID: Final = '{"status":"invalid_token"}'


class InvalidTokenError(ValueError):
    """A token that is refused; the text is for the log.

    `required_scope` has the scope that the token lacks, and is empty for any other fault.
    """

    def __init__(self, reason: str, required_scope: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.required_scope = required_scope

    @property
    def answer(self) -> str:
        """The answer to the client, in Kafka's JSON."""
        if not self.required_scope:
            return _INVALID
        scope = ", ".join(self.required_scope)
        return f'{{"status":"insufficient_scope", "scope":"[{scope}]"}}'


class BearerToken(NamedTuple):
    """A token that has been checked: the user, and the end in milliseconds since 1970."""

    user: str
    expires_at_ms: int


def checked_user(name: str) -> str:
    """Return the name of a user; raises InvalidTokenError for one that has no form in UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidTokenError("the name of the user has half of a character") from error
    return name


ValidateToken: TypeAlias = Callable[[str], BearerToken]
"""Checks a token; raises InvalidTokenError, or SaslBrokenError where Kafka closes at once."""


class OAuthBearerServer:
    """Authenticates a client by one token; one that is refused may be followed by another."""

    def __init__(self, validate: ValidateToken, note_refusal: Callable[[str], None]) -> None:
        self._validate = validate
        self._note_refusal = note_refusal
        self._refusal: str | None = None
        self.user: AuthenticatedUser | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Return no bytes for a valid token, else why it is not; raises SaslError."""
        if token == _GIVEN_UP and self._refusal is not None:
            raise SaslAuthenticationError(self._refusal)
        try:
            response = ClientResponse.decode(token)
            checked = self._validate(response.token)
        except OAuthBearerSyntaxError as error:
            raise SaslError(str(error)) from error
        except InvalidTokenError as error:
            self._note_refusal(str(error))
            self._refusal = error.answer
            return self._refusal.encode()
        if response.authorization_id not in {"", checked.user}:
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id "
                f"({response.authorization_id}) that is different from the token's principal name "
                f"({checked.user})"
            )
        self.user = AuthenticatedUser(checked.user, checked.expires_at_ms)
        return b""
