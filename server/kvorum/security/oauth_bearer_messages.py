"""The message of OAUTHBEARER (RFC 7628), as Kafka reads it."""

import re
from typing import Final, NamedTuple, Self

from kvorum.security.sasl_server import SaslBrokenError
from kvorum.wire.primitives import decode_with_replacement

_SEPARATOR: Final = "\x01"
_NAME: Final = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_PAIR: Final = rf"[A-Za-z]+=[\x21-\x7e \t\r\n]+{_SEPARATOR}"
_RESPONSE: Final = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,{_SEPARATOR}(?P<pairs>(?:{_PAIR})*){_SEPARATOR}"
)
_AUTH: Final = re.compile(r"(?P<scheme>[A-Za-z0-9_]+) +(?P<token>[-_~+/.A-Za-z0-9]+=*)", re.ASCII)
_AUTH_KEY: Final = "auth"
_SCHEME: Final = "bearer"


class OAuthBearerSyntaxError(ValueError):
    """Bytes that are not the message of a client."""


class ClientResponse(NamedTuple):
    """The message of a client: its token, and the user that it asks to be, which may be empty."""

    authorization_id: str
    token: str

    @classmethod
    def decode(cls, message: bytes) -> Self:
        """Read a message; raises OAuthBearerSyntaxError, or SaslBrokenError for another scheme.

        Extensions are read and have no effect: nothing at Kafka's broker asks for them either.
        """
        match = _RESPONSE.fullmatch(decode_with_replacement(message))
        if match is None:
            raise OAuthBearerSyntaxError("Invalid OAUTHBEARER client first message")
        pairs = [pair.partition("=") for pair in match["pairs"].split(_SEPARATOR)[:-1]]
        values = {key: value for key, _, value in pairs}
        auth = _AUTH.fullmatch(values.get(_AUTH_KEY, ""))
        if auth is None:
            raise OAuthBearerSyntaxError(
                "Invalid OAUTHBEARER client first message: no 'auth' of the right format"
            )
        if auth["scheme"].lower() != _SCHEME:
            # Kafka fails as it is about to say so.
            raise SaslBrokenError(f"a scheme of OAUTHBEARER that is not {_SCHEME}")
        return cls(match["authorization_id"] or "", auth["token"])
