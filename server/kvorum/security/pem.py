"""Private keys and certificates as text, by Kafka's rules: only PKCS#8, one key, any order."""

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.serialization import load_der_private_key

from kvorum.security.errors import InvalidSslSettingsError

PrivateKey: TypeAlias = rsa.RSAPrivateKey | dsa.DSAPrivateKey | ec.EllipticCurvePrivateKey
_PRIVATE_KEY: Final = "PRIVATE KEY"
_KEY_LABELS: Final = frozenset({_PRIVATE_KEY, "ENCRYPTED PRIVATE KEY"})
_BLOCK: Final = re.compile(
    r"-+BEGIN\s+(?P<label>[^-]+?)-+\s+(?P<base64>[A-Za-z0-9+/=\s]+?)-+END\s+(?P=label)-+"
)


class _Block(NamedTuple):
    """One block of a text: its label, and its bytes."""

    label: str
    content: bytes


def read_key(text: str, password: str | None) -> PrivateKey:
    """Return the one private key of a text; raises InvalidSslSettingsError."""
    blocks = list(_blocks(text, _PRIVATE_KEY))
    if len(blocks) != 1:
        raise InvalidSslSettingsError(f"Expected one private key, but found {len(blocks)}")
    block = blocks[0]
    if block.label not in _KEY_LABELS:
        raise InvalidSslSettingsError(
            f"Private key could not be loaded: {block.label} is not PKCS#8"
        )
    try:
        key = load_der_private_key(block.content, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        # The text of the error is left out, as it may be about the password.
        raise InvalidSslSettingsError("Private key could not be loaded") from error
    return served_key(key)


def served_key(key: object) -> PrivateKey:
    """Return a key of a kind that Kafka knows; raises InvalidSslSettingsError."""
    if isinstance(key, PrivateKey):
        return key
    raise InvalidSslSettingsError("Private key could not be loaded: neither RSA, DSA nor EC")


def read_certificates(text: str) -> tuple[x509.Certificate, ...]:
    """Return all certificates of a text, at least one; raises InvalidSslSettingsError."""
    return tuple(_certificate(block.content) for block in _blocks(text, "CERTIFICATE"))


def _certificate(encoded: bytes) -> x509.Certificate:
    try:
        return x509.load_der_x509_certificate(encoded)
    except ValueError as error:
        raise InvalidSslSettingsError(f"Could not parse certificate: {error}") from error


def _blocks(text: str, label: str) -> Iterator[_Block]:
    """Yield the blocks whose label ends so; raises InvalidSslSettingsError without one."""
    found = [match for match in _BLOCK.finditer(text) if match["label"].endswith(label)]
    if not found:
        raise InvalidSslSettingsError(f"No matching {label} entries in PEM file")
    for match in found:
        yield _Block(match["label"], b64decode(match["base64"]))
