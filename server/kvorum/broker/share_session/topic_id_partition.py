"""A partition by its topic's id, with the name that the topic has (Kafka's TopicIdPartition)."""

from typing import NamedTuple


class TopicIdPartition(NamedTuple):
    """A partition; `topic` is None where no topic has the id."""

    topic_id: bytes
    partition: int
    topic: str | None

    @property
    def key(self) -> tuple[bytes, int]:
        """The topic id and the index, by which a partition is one whatever its name."""
        return self.topic_id, self.partition
