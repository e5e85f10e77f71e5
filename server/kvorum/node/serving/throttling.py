"""How long a connection is left unread after an answer that tells its client to wait."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_KEY_AND_VERSION: Final = struct.Struct(">hh")
_INT32: Final = struct.Struct(">i")
_CORRELATION_ID_BYTES: Final = 4
_NO_TAGS: Final = 0
_FIRST_VERSIONS: Final[Mapping[int, tuple[int, int]]] = MappingProxyType(
    {19: (2, 5), 20: (1, 4), 37: (0, 2)}
)
"""CreateTopics, DeleteTopics and CreatePartitions: since which version the response begins with
ThrottleTimeMs, and since which its header has tags in front of that."""


def pause_ms(request_frame: bytes, response_frame: bytes) -> int:
    """Return for how long nothing more is taken from who sent `request_frame`, 0 for on at once.

    Kafka mutes the channel of a client that exceeded its quota for as long as it tells the client
    to wait, so that clients that do not listen are slowed down as well.
    """
    if len(request_frame) < _KEY_AND_VERSION.size:
        return 0
    key, version = _KEY_AND_VERSION.unpack_from(request_frame)
    first = _FIRST_VERSIONS.get(key)
    if first is None or version < first[0]:
        return 0
    start = _CORRELATION_ID_BYTES
    if version >= first[1]:
        if response_frame[start] != _NO_TAGS:
            return 0
        start += 1
    (throttle_time_ms,) = _INT32.unpack_from(response_frame, start)
    return max(0, int(throttle_time_ms))
