"""The records that the state of share partitions needs (Kafka's ShareCoordinatorOffsetsManager)."""

from typing import Final

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.coordinator.timeline import Timeline, TimelineMap, TimelineValue

NO_OFFSET: Final = -1


class ShareCoordinatorOffsetsManager:
    """The offset of the last snapshot of each share partition."""

    def __init__(self, timeline: Timeline) -> None:
        self._offsets = TimelineMap[SharePartitionKey, int](timeline)
        self._last_offset = TimelineValue(timeline, NO_OFFSET)

    def snapshot_written(self, key: SharePartitionKey, offset: int) -> None:
        """Know of a snapshot, which replaces the records of its share partition before it."""
        self._offsets.set(key, offset)
        self._last_offset.set(offset)

    def tombstone_written(self, key: SharePartitionKey, offset: int) -> None:
        """Know of a tombstone, after which a share partition needs no record."""
        self._offsets.remove(key)
        self._last_offset.set(offset)

    def last_redundant_offset(self) -> int | None:
        """Return the offset before which no record is needed; None where all records are.

        Where no share partition is left it is that of the last tombstone.
        """
        offset = min(self._offsets.values(), default=self._last_offset.get())
        return offset if offset > 0 else None
