"""The partitions of all topics in one row, those of deleted topics included."""

from kvorum.simulation.partitions.settings import OFFSETS_ID, TOPIC_ID


class Places:
    """The number of each partition: first those of the topic that stays, then as they come."""

    def __init__(self, partitions: int) -> None:
        """`partitions` is how many the topic has that stays."""
        first = [*((TOPIC_ID, index) for index in range(partitions)), (OFFSETS_ID, 0)]
        self._partitions = first
        self._numbers = {partition: number for number, partition in enumerate(first)}

    def number(self, topic_id: bytes, index: int) -> int:
        """Return the number of a partition; one that was not asked for before gets the next."""
        partition = topic_id, index
        if partition not in self._numbers:
            self._numbers[partition] = len(self._partitions)
            self._partitions.append(partition)
        return self._numbers[partition]

    def partition(self, number: int) -> tuple[bytes, int]:
        """Return the topic id and the index of the partition with a number."""
        return self._partitions[number]
