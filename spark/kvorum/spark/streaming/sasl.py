"""The client's side of SASL: PLAIN (RFC 4616), and SCRAM (RFC 5802) with two hashes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Generator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.spark.streaming.security import Credentials

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 1_000_000
"""A second of work: no server is set to more."""
_NO_BINDING: Final = "n,,"
Exchange: TypeAlias = Generator[bytes, bytes]
"""The requests of a client; it gets the server's answer to each."""


class SaslError(Exception):
    """The server's messages are none of the mechanism, or it does not know the password."""


def plain(credentials: Credentials, _nonce: str) -> Exchange:
    """Send name and password."""
    yield f"\0{credentials.user}\0{credentials.password}".encode()


def scram_sha_256(credentials: Credentials, nonce: str) -> Exchange:
    """Prove the knowledge of the password, and have the server prove it."""
    yield from _scram(credentials, nonce, "sha256")


def scram_sha_512(credentials: Credentials, nonce: str) -> Exchange:
    """Prove the knowledge of the password, and have the server prove it."""
    yield from _scram(credentials, nonce, "sha512")


MECHANISMS: Final[Mapping[str, Callable[[Credentials, str], Exchange]]] = MappingProxyType(
    {"PLAIN": plain, "SCRAM-SHA-256": scram_sha_256, "SCRAM-SHA-512": scram_sha_512}
)
"""The mechanisms by Kafka's names; each takes a nonce that no other exchange has."""


def _scram(credentials: Credentials, nonce: str, hash_name: str) -> Exchange:
    user = credentials.user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    answer = yield f"{_NO_BINDING}{first}".encode()
    fields = _fields(answer)
    both, salt, iterations = fields.get("r", ""), _bytes(fields, "s"), fields.get("i", "")
    if not both.startswith(nonce) or both == nonce:
        raise SaslError("the server's nonce does not continue the client's")
    if not iterations.isdecimal() or not ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX:
        raise SaslError(f"the server asks for {iterations[:20]!r} iterations")
    salted = hashlib.pbkdf2_hmac(hash_name, credentials.password.encode(), salt, int(iterations))
    binding = base64.b64encode(_NO_BINDING.encode()).decode()
    last = f"c={binding},r={both}"
    signed = ",".join((first, answer.decode(), last)).encode()
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    signature = hmac.digest(stored_key, signed, hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    answer = yield f"{last},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), signed, hash_name)
    if not hmac.compare_digest(_bytes(_fields(answer), "v"), expected):
        raise SaslError("the server does not know the password")


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise SaslError("a message of the server is no text") from None
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def _bytes(fields: Mapping[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(fields[name], validate=True)
    except (KeyError, binascii.Error):
        raise SaslError(f"a message of the server lacks its field {name!r}") from None
