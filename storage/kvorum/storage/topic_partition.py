"""A partition of a topic, by the topic's name (Kafka's TopicPartition)."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """The name of a topic, and the number of one of its partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return the name of the partition's directory."""
        return f"{self.topic}-{self.partition}"
