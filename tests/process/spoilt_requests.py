"""Requests that are spoilt: bytes that are none, and messages with fields as they should not be."""

import struct
from typing import Any

from kvorum.wire.api_keys import ApiKey

CUT_OFF = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS hello": bytes.fromhex("1603010200010001fc0303") + bytes(506),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "negative size": struct.pack(">i", -1),
    "lowest size": struct.pack(">i", -(2**31)),
    "highest size": struct.pack(">i", 2**31 - 1),
    "no header": struct.pack(">i", 0),
    "unknown key": struct.pack(">ihhih", 10, 4711, 0, 1, -1),
    "unknown version": struct.pack(">ihhih", 10, ApiKey.CREATE_TOPICS, 99, 1, -1),
    "body cut short": struct.pack(">ihhihih", 16, ApiKey.CREATE_TOPICS, 2, 1, -1, 3, 9),
    "array of 2^31-1": struct.pack(">ihhihi", 14, ApiKey.CREATE_TOPICS, 2, 1, -1, 2**31 - 1),
    "array below null": struct.pack(">ihhihi", 14, ApiKey.CREATE_TOPICS, 2, 1, -1, -7),
    "client id beyond the end": struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, 32767),
    "endless varint": struct.pack(">ihhihB", 21, ApiKey.CREATE_TOPICS, 7, 1, -1, 0) + b"\xff" * 10,
}


# Fields, each named by the way to it; a value that is a function is asked, with what it is about.
Spoilt = dict[str, object]


def spoil(message: Any, spoilt: Spoilt, about: object) -> None:
    """Set fields of a message."""
    for path, value in spoilt.items():
        *steps, last = path.split(".")
        target = message
        for step in steps:
            target = target[int(step)] if step.isdigit() else getattr(target, step)
        setattr(target, last, value(about) if callable(value) else value)


def name_of(spoilt: Spoilt, *, without: str) -> str:
    """Return what is spoilt in a few words, for the name of a test."""
    return ", ".join(f"{path.removeprefix(without)}={_word(what)}" for path, what in spoilt.items())


def _word(what: object) -> str:
    if isinstance(what, bytes):
        return f"{len(what)} times {what[:1].hex()}"
    return getattr(what, "__name__", str(what))
