"""Which partition of ``__consumer_offsets`` coordinates a group."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.java_hash import string_hash

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
_SIGN_BIT: Final = 1 << 31


def coordinator_partition(group_id: str, partition_count: int) -> int:
    """Return the partition, by the hash that Java's strings have."""
    found = string_hash(group_id)
    if found == _SIGN_BIT:
        # The lowest number has no positive counterpart; Kafka takes 0.
        return 0
    magnitude = 2 * _SIGN_BIT - found if found > _SIGN_BIT else found
    return magnitude % partition_count
