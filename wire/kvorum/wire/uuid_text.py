"""Kafka's uuids: 16 bytes on the wire, 22 characters of URL-safe base64 in text.

Plain `bytes` are used for them throughout; `uuid.UUID` costs several times as much to make.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from kvorum.wire.java_base64 import decode_java_base64_url

if TYPE_CHECKING:
    from random import Random

UUID_BYTES = 16
ZERO_UUID = bytes(UUID_BYTES)
METADATA_TOPIC_ID = bytes(15) + b"\x01"
RESERVED_UUIDS = frozenset({ZERO_UUID, METADATA_TOPIC_ID})


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
    value = decode_java_base64_url(text)
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
