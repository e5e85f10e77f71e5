"""The topics of which an assignor distributes the partitions."""

from collections.abc import Iterable

from kvorum.groups.assignors.partition_assignor import GroupSpec, PartitionAssignorError
from kvorum.wire.uuid_text import uuid_to_text


def count_partitions(group: GroupSpec, topic_ids: Iterable[bytes]) -> dict[bytes, int]:
    """Return the number of partitions of each topic, in the order given.

    Raises `PartitionAssignorError` for a topic without one.
    """
    counts: dict[bytes, int] = {}
    for topic_id in topic_ids:
        count = group.partition_counts.get(topic_id)
        if count is None:
            raise PartitionAssignorError(
                f"Members are subscribed to topic {uuid_to_text(topic_id)} which doesn't exist in "
                "the topic metadata."
            )
        counts[topic_id] = count
    return counts
