"""The core's values as the texts of Kafka's responses show them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kvorum.raft.basics import Endpoint, Endpoints, ReplicaKey
from kvorum.wire.uuid_text import uuid_to_text

_TABLE_SIZE_MIN: Final = 16
_HASH_MASK: Final = 0xFFFFFFFF


def key_text(key: ReplicaKey) -> str:
    """Return the text of a replica's key."""
    known = key.directory_id
    directory = "<undefined>" if known is None else uuid_to_text(known)
    return f"ReplicaKey(id={key.id}, directoryId={directory})"


def keys_text(keys: Iterable[ReplicaKey]) -> str:
    """Return the text of several keys, in the order in which Java iterates a set of them.

    Where two keys have the same place in Java's table, the given order decides.
    """
    known = list(keys)
    table_size = _TABLE_SIZE_MIN
    while len(known) > table_size * 3 // 4:
        table_size *= 2
    ordered = sorted(known, key=lambda key: _java_hash(key) % table_size)
    return f"[{', '.join(map(key_text, ordered))}]"


def _java_hash(key: ReplicaKey) -> int:
    """Return the hash that decides a key's place in Java's table."""
    directory_hash = 0
    if key.directory_id is not None:
        a, b, c, d = struct.unpack(">4I", key.directory_id)
        directory_hash = a ^ b ^ c ^ d
    value = (31 * (31 + key.id) + directory_hash) & _HASH_MASK
    return value ^ (value >> 16)


def listener_text(name: str) -> str:
    """Return the text of a listener's name."""
    return f"ListenerName({name})"


def endpoints_text(endpoints: Endpoints) -> str:
    """Return the text of a node's endpoints."""

    def one(endpoint: Endpoint) -> str:
        address = f"{endpoint.host}/<unresolved>:{endpoint.port}"
        return f"{listener_text(endpoint.name)}={address}"

    return f"Endpoints(endpoints={{{', '.join(map(one, endpoints))}}})"


def offset_text(offset: int | None) -> str:
    """Return the text of an offset that may be absent."""
    return "Optional.empty" if offset is None else f"Optional[{offset}]"
