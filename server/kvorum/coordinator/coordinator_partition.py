"""The partition of an internal topic whose leader coordinates a key."""

from typing import Final

from kvorum.metadata.java_hash import string_hash

_SIGN_BIT: Final = 1 << 31


def coordinator_partition(key: str, partition_count: int) -> int:
    """Return the partition of a group's id, a transactional id or a share partition's key.

    As in Kafka it is the absolute value of Java's ``String.hashCode`` modulo the count.
    """
    found = string_hash(key)
    if found == _SIGN_BIT:
        # The lowest number has no positive counterpart; Kafka takes 0.
        return 0
    magnitude = 2 * _SIGN_BIT - found if found > _SIGN_BIT else found
    return magnitude % partition_count
