"""Private keys and certificates as text, by Kafka's rules: only PKCS#8, one key, any order."""

import re
from typing import Final, NamedTuple, TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.serialization import load_der_private_key

from kvorum.security.errors import InvalidSslSettingsError
from kvorum.wire.java_base64 import decode_java_base64

PrivateKey: TypeAlias = rsa.RSAPrivateKey | dsa.DSAPrivateKey | ec.EllipticCurvePrivateKey
_PRIVATE_KEY: Final = "PRIVATE KEY"
_CERTIFICATE: Final = "CERTIFICATE"
_OLDER_KEY_LABELS: Final = frozenset({"RSA PRIVATE KEY", "DSA PRIVATE KEY", "EC PRIVATE KEY"})
"""The labels of keys in forms before PKCS#8."""
_HEADERS: Final = r"(?:\s*[^\r\n]*:[^\r\n]*[\r\n]+)*"
_BASE64: Final = r"(?P<base64>[A-Za-z0-9+/=\s]*)"


class _Block(NamedTuple):
    """One block of a text: its label, and its bytes."""

    label: str
    content: bytes


def _block_pattern(label: str) -> re.Pattern[str]:
    """Return the pattern of blocks whose label ends so; both ends are lines of their own."""
    words = label.replace(" ", r"\s+")
    begin = rf"-+BEGIN\s*(?P<label>.*{words}[^-]*)-+\s+"
    end = rf"-+END\s*.*{words}[^-]*-+\s+"
    return re.compile(begin + _HEADERS + _BASE64 + end, re.ASCII)


_BLOCKS: Final = {label: _block_pattern(label) for label in (_PRIVATE_KEY, _CERTIFICATE)}


def read_key(text: str, password: str | None) -> PrivateKey:
    """Return the one private key of a text; raises InvalidSslSettingsError."""
    blocks = _blocks(text, _PRIVATE_KEY)
    if len(blocks) != 1:
        raise InvalidSslSettingsError(f"Expected one private key, but found {len(blocks)}")
    block = blocks[0]
    if block.label in _OLDER_KEY_LABELS:
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
    return tuple(_certificate(block.content) for block in _blocks(text, _CERTIFICATE))


def _certificate(encoded: bytes) -> x509.Certificate:
    try:
        return x509.load_der_x509_certificate(encoded)
    except ValueError as error:
        raise InvalidSslSettingsError(f"Could not parse certificate: {error}") from error


def _blocks(text: str, label: str) -> list[_Block]:
    """Return the blocks whose label ends so, at least one; raises InvalidSslSettingsError."""
    # The last end of a line may be missing.
    found = list(_BLOCKS[label].finditer(text + "\n"))
    if not found:
        raise InvalidSslSettingsError(f"No matching {label} entries in PEM file")
    return [_Block(match["label"].strip(), _decoded(match["base64"])) for match in found]


def _decoded(base64: str) -> bytes:
    try:
        return decode_java_base64("".join(base64.split()))
    except ValueError as error:
        raise InvalidSslSettingsError(str(error)) from error
