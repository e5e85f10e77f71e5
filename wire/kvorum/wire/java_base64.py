"""Base64 as Java's basic decoders read it: padding may be missing, and nothing may follow it."""

import base64
import string
from typing import Final

_STANDARD: Final = b"+/"
_URL_SAFE: Final = b"-_"
_DIGITS: Final = {
    last: frozenset(string.ascii_letters + string.digits + last.decode())
    for last in (_STANDARD, _URL_SAFE)
}
_DIGITS_OF_GROUP: Final = 4
"""The digits of three bytes."""


def decode_java_base64(text: str) -> bytes:
    """Return the bytes of a text; raises ValueError with the message of Java's decoder."""
    return _decoded(text, _STANDARD)


def decode_java_base64_url(text: str) -> bytes:
    """Return the bytes of a URL-safe text; raises ValueError with the message of Java's decoder."""
    return _decoded(text, _URL_SAFE)


def _decoded(text: str, last_digits: bytes) -> bytes:
    if (problem := _problem(text, last_digits)) is not None:
        raise ValueError(problem)
    digits = text.rstrip("=")
    padding = "=" * (-len(digits) % _DIGITS_OF_GROUP)
    return base64.b64decode(digits + padding, altchars=last_digits)


def _problem(text: str, last_digits: bytes) -> str | None:
    if len(text) == 1:
        return "Input byte[] should at least have 2 bytes for base64 bytes"
    digits = text.partition("=")[0]
    known = _DIGITS[last_digits]
    for character in digits:
        if character not in known:
            return f"Illegal base64 character {_java_byte(character)}"
    padding = text[len(digits) :]
    rest = len(digits) % _DIGITS_OF_GROUP
    if padding and (rest == 0 or (rest == 2 and not padding.startswith("=="))):
        return "Input byte array has wrong 4-byte ending unit"
    if rest == 1:
        return "Last unit does not have enough valid bits"
    read = len(digits) + (min(len(padding), 2 if rest == 2 else 1))
    return f"Input byte array has incorrect ending byte at {read}" if read < len(text) else None


def _java_byte(character: str) -> str:
    """Return a character's byte as Java writes it in base 16; none beyond Latin-1."""
    number = ord(character) if ord(character) < 0x100 else ord("?")
    return f"{number if number < 0x80 else number - 0x100:x}"
