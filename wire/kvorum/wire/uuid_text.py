"""Kafka's uuids: 16 bytes on the wire, 22 characters of URL-safe base64 in text.

Plain `bytes` are used for them throughout; `uuid.UUID` costs several times as much to make.
"""

from __future__ import annotations

import base64
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

UUID_BYTES = 16
ZERO_UUID = bytes(UUID_BYTES)
METADATA_TOPIC_ID = bytes(15) + b"\x01"
RESERVED_UUIDS = frozenset({ZERO_UUID, METADATA_TOPIC_ID})
_BASE64_CHARACTERS = frozenset(string.ascii_letters + string.digits + "-_")


def uuid_to_text(value: bytes) -> str:
    """Return the 22 characters that Kafka prints for `value`."""
    if len(value) != UUID_BYTES:
        message = f"a uuid has {UUID_BYTES} bytes, not {len(value)}"
        raise ValueError(message)
    return base64.urlsafe_b64encode(value)[:-2].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """Return the uuid that `text` spells; raises `ValueError` for anything else."""
    if len(text) > 24:
        message = (
            f"Input string with prefix `{text[:24]}` is too long to be decoded as a base64 UUID"
        )
        raise ValueError(message)
    if (problem := _base64_problem(text)) is not None:
        raise ValueError(problem)
    body = text.rstrip("=")
    value = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    if len(value) != UUID_BYTES:
        message = (
            f"Input string `{text}` decoded as {len(value)} bytes, which is not equal to "
            f"the expected {UUID_BYTES} bytes of a base64-encoded UUID"
        )
        raise ValueError(message)
    return value


def random_uuid(random: Random) -> bytes:
    """Draw a uuid as Kafka does: version 4, not reserved, and its text not starting with a dash."""
    while True:
        value = bytearray(random.randbytes(UUID_BYTES))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        drawn = bytes(value)
        if drawn not in RESERVED_UUIDS and not uuid_to_text(drawn).startswith("-"):
            return drawn


def _base64_problem(text: str) -> str | None:
    """Return the message of Java's decoder for text that it cannot decode, or None."""
    if len(text) == 1:
        return "Input byte[] should at least have 2 bytes for base64 bytes"
    body = text.partition("=")[0]
    for character in body:
        if character not in _BASE64_CHARACTERS:
            return f"Illegal base64 character {_java_byte(character)}"
    padding = text[len(body) :]
    rest = len(body) % 4
    if padding and (rest == 0 or (rest == 2 and not padding.startswith("=="))):
        return "Input byte array has wrong 4-byte ending unit"
    if rest == 1:
        return "Last unit does not have enough valid bits"
    read = len(body) + (min(len(padding), 2 if rest == 2 else 1))
    return f"Input byte array has incorrect ending byte at {read}" if read < len(text) else None


def _java_byte(character: str) -> str:
    """Return a character's byte as Java writes it in base 16; none beyond Latin-1."""
    number = ord(character) if ord(character) < 0x100 else ord("?")
    return f"{number if number < 0x80 else number - 0x100:x}"
