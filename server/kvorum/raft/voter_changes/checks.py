"""The checks before a change of the voters, and the core's values as Kafka's refusals show them.

There is one change at a time, and each begins from a committed set: then every majority of the old
set shares a voter with every majority of the new one. A leader must have committed a record of its
own epoch first, so that no change of an earlier leader can come back.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from kvorum.raft.basics import Endpoint, Endpoints, ReplicaKey
from kvorum.raft.messages import Error
from kvorum.raft.replica import Replica
from kvorum.raft.voter_changes.completion import poll_change
from kvorum.wire.uuid_text import uuid_to_text

_TABLE_SIZE_MIN: Final = 16
_HASH_MASK: Final = 0xFFFFFFFF
RECONFIGURABLE_KRAFT_VERSION = 1
"""The lowest kraft.version at which the voters are in the log and can change."""

UNEXPLAINED = ""
"""The message of an error that Kafka sends without text: the field's default, an empty string."""


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


class Refusal(NamedTuple):
    """Why a change is not made; `message` is Kafka's text."""

    error: Error
    message: str = UNEXPLAINED


def refuse_while_changing(replica: Replica, now: float) -> Refusal | None:
    """Return why no change can begin: another is under way, or nothing is committed yet."""
    poll_change(replica, now)
    if replica.change is not None:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to handle previous voter change request",
        )
    if replica.high_watermark is None:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to establish HWM and fence previous voter "
            "changes",
        )
    return None


def refuse_unless_settled(replica: Replica, what: str) -> Refusal | None:
    """Return why the voters cannot change: they are not in the log, or not committed.

    `what` is the kind of change, "adding" or "removing".
    """
    history = replica.history
    version = history.kraft_version
    if version < RECONFIGURABLE_KRAFT_VERSION:
        return Refusal(
            Error.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {what} voter because the kraft.version feature is {version}",
        )
    if not replica.are_voters_committed:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for voters to commit the latest voter change at "
            f"{offset_text(history.voters_offset)} with HWM {replica.high_watermark}",
        )
    return None
