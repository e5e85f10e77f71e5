"""The partition of ``__consumer_offsets`` that coordinates a group."""

from typing import Final

from kvorum.metadata.java_hash import partition_of_string

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"


def coordinator_partition(group_id: str, partition_count: int) -> int:
    """Return the partition, by the hash that Java's strings have."""
    return partition_of_string(group_id, partition_count)
