"""Reserved directory ids, which name no real log directory (KIP-858)."""

from collections.abc import Iterable
from typing import Final

MIGRATING: Final = bytes(16)
"""The directory is not known: the partition was created before directories were recorded."""

UNASSIGNED: Final = bytes(15) + b"\x01"
"""The broker has yet to choose a directory."""

LOST: Final = bytes(15) + b"\x02"
"""The replica's directory is offline, and its id is not known."""

RESERVED_BELOW: Final = 100


def is_reserved(directory_id: bytes) -> bool:
    """Return whether `directory_id` is reserved, so that no real directory may have it."""
    return int.from_bytes(directory_id, "big") < RESERVED_BELOW


def is_online(directory_id: bytes, online_directories: Iterable[bytes]) -> bool:
    """Return whether a replica in `directory_id` is usable on a broker with `online_directories`.

    A broker that registered no directories is assumed to have every directory online.
    """
    if directory_id in (UNASSIGNED, MIGRATING):
        return True
    if directory_id == LOST:
        return False
    online = tuple(online_directories)
    return not online or directory_id in online


def in_kafka_order(directory_id: bytes) -> tuple[int, int]:
    """Return the key by which Kafka sorts directories: two signed halves."""
    return (
        int.from_bytes(directory_id[:8], "big", signed=True),
        int.from_bytes(directory_id[8:], "big", signed=True),
    )
