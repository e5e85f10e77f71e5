"""The message of OAUTHBEARER (RFC 7628), as Kafka reads it."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from kvorum.security.errors import InvalidOAuthSettingsError
from kvorum.security.sasl_server import SaslBrokenError
from kvorum.wire.primitives import decode_with_replacement

_SEPARATOR: Final = "\x01"
_NAME: Final = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_EXTENSION_NAME: Final = "[A-Za-z]+"
_EXTENSION_VALUE: Final = r"[\x21-\x7e \t\r\n]+"
_PAIR: Final = rf"{_EXTENSION_NAME}={_EXTENSION_VALUE}{_SEPARATOR}"
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


def client_message(token: str, extensions: Mapping[str, str]) -> bytes:
    """Return the message of a client that asks for no other user than that of its token."""
    pairs = {_AUTH_KEY: f"Bearer {token}", **extensions}
    text = "".join(f"{key}={value}{_SEPARATOR}" for key, value in pairs.items())
    return f"n,,{_SEPARATOR}{text}{_SEPARATOR}".encode()


def check_extension(name: str, value: str) -> None:
    """Raise InvalidOAuthSettingsError for an extension that no message can have."""
    if re.fullmatch(_EXTENSION_NAME, name) is None or name == _AUTH_KEY:
        raise InvalidOAuthSettingsError(f"Extension name {name} is invalid")
    if re.fullmatch(_EXTENSION_VALUE, value) is None:
        raise InvalidOAuthSettingsError(f"Extension value for extension {name} is invalid")
