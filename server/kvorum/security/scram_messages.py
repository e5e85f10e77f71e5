"""The messages of SCRAM (RFC 5802), as Kafka's ScramMessages reads and writes them.

Kafka builds again what both sides sign, out of the parts that it has read, and not out of the bytes
that came: so do these classes.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from kvorum.wire.primitives import decode_with_replacement

_NAME: Final = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
"""A user's name: ASCII, with comma and equals sign escaped."""
_VALUE: Final = r"[\x01-+\--\x7f]+"
BY_TOKEN: Final = "tokenauth"  # noqa: S105 - a name
"""The extension, and option of a login module, of a client with a delegation token."""
_NONCE: Final = r"[!-+\--~]+"
_EXTENSIONS: Final = rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*)"
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,(?:m={_VALUE},)?"
    rf"n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    rf"c=(?P<channel_binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS},p=(?P<proof>{_BASE64})"
)
_SERVER_FIRST: Final = re.compile(
    rf"(?:m={_VALUE},)?r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]+)"
    rf"{_EXTENSIONS}"
)
_SERVER_FINAL: Final = re.compile(
    rf"e=(?P<error>[\x01-+\--<>-\x7f]+)|v=(?P<signature>{_BASE64}){_EXTENSIONS}"
)
_INT_MAX: Final = 2**31 - 1
NO_CHANNEL_BINDING: Final = b"n,,"
"""The beginning of the first message of a client that binds nothing to the channel."""


class ScramSyntaxError(ValueError):
    """Bytes that are not the message that is due."""


class ClientFirst(NamedTuple):
    """The first message of a client; `name` is escaped, as it came."""

    authorization_id: str
    name: str
    nonce: str
    extensions: Mapping[str, str]

    @classmethod
    def decode(cls, token: bytes) -> Self:
        """Read a message; raises ScramSyntaxError."""
        match = _matched(_CLIENT_FIRST, token, "client first")
        extensions: dict[str, str] = {}
        for pair in match["extensions"].split(",")[1:]:
            key, _, value = pair.partition("=")
            extensions[key] = value
        return cls(match["authorization_id"] or "", match["name"], match["nonce"], extensions)

    @property
    def user(self) -> str:
        """The name of the user, unescaped."""
        return self.name.replace("=2C", ",").replace("=3D", "=")

    @property
    def is_by_token(self) -> bool:
        """Whether the user is named by the id of a delegation token."""
        return self.extensions.get(BY_TOKEN, "").lower() == "true"

    @property
    def signed(self) -> str:
        """The part of this message that both sides sign, with extensions in the order they came."""
        pairs = [f",{key}={value}" for key, value in self.extensions.items()]
        return f"n={self.name},r={self.nonce}{''.join(pairs)}"


class ServerFirst(NamedTuple):
    """The answer to the first message: both nonces in one, and how the password was hashed."""

    nonce: str
    salt: bytes
    iterations: int

    @property
    def text(self) -> str:
        """The message, which is signed as it is."""
        return f"r={self.nonce},s={b64encode(self.salt).decode()},i={self.iterations}"

    @classmethod
    def decode(cls, token: bytes) -> Self:
        """Read a message; raises ScramSyntaxError."""
        match = _matched(_SERVER_FIRST, token, "server first")
        iterations = match["iterations"].lstrip("0") or "0"
        if len(iterations) > len(str(_INT_MAX)) or int(iterations) > _INT_MAX:
            raise ScramSyntaxError("Invalid SCRAM server first message format: invalid iterations")
        if int(iterations) == 0:
            raise ScramSyntaxError(
                "Invalid SCRAM server first message format: invalid iterations 0"
            )
        return cls(match["nonce"], b64decode(match["salt"]), int(iterations))


class ClientFinal(NamedTuple):
    """The last message of a client, with the proof that it knows the password."""

    channel_binding: bytes
    nonce: str
    proof: bytes

    @classmethod
    def decode(cls, token: bytes) -> Self:
        """Read a message; raises ScramSyntaxError."""
        match = _matched(_CLIENT_FINAL, token, "client final")
        return cls(b64decode(match["channel_binding"]), match["nonce"], b64decode(match["proof"]))

    @property
    def signed(self) -> str:
        """The part of this message that both sides sign, without extensions."""
        return f"c={b64encode(self.channel_binding).decode()},r={self.nonce}"

    @property
    def text(self) -> str:
        """The message."""
        return f"{self.signed},p={b64encode(self.proof).decode()}"


class ServerFinal(NamedTuple):
    """The last message of a server: an error, or the proof that it knows the user's keys."""

    error: str | None
    signature: bytes

    @classmethod
    def decode(cls, token: bytes) -> Self:
        """Read a message; raises ScramSyntaxError."""
        match = _matched(_SERVER_FINAL, token, "server final")
        return cls(match["error"], b64decode(match["signature"] or ""))


def escaped_name(user: str) -> str:
    """Return the name of a user as messages have it."""
    return user.replace("=", "=3D").replace(",", "=2C")


def _matched(pattern: re.Pattern[str], token: bytes, name: str) -> re.Match[str]:
    text = decode_with_replacement(token)
    match = pattern.fullmatch(text)
    if match is None:
        raise ScramSyntaxError(f"Invalid SCRAM {name} message format: {text}")
    return match
