"""Values by group, topic and partition, with a history."""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from kvorum.groups.timeline import Timeline, TimelineMap

Value = TypeVar("Value")

PartitionMap: TypeAlias = TimelineMap[int, Value]
TopicMap: TypeAlias = TimelineMap[str, PartitionMap[Value]]


class TopicPartition(NamedTuple):
    """A partition by the name of its topic."""

    topic: str
    partition: int


class OffsetTable(Generic[Value]):
    """A table of three floors; an empty floor is removed. `epoch` None reads the newest state."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._groups = TimelineMap[str, TopicMap[Value]](timeline)

    def topics(self, group_id: str, epoch: int | None = None) -> TopicMap[Value] | None:
        """Return what a group has; None if it has nothing."""
        return self._groups.get(group_id, epoch)

    @property
    def count(self) -> int:
        """The number of values of all groups."""
        return sum(len(self.entries(group_id)) for group_id in self.groups())

    def groups(self) -> Iterator[str]:
        """Yield the groups that have something."""
        return (group_id for group_id, _ in self._groups.items())

    def get(self, group_id: str, where: TopicPartition, epoch: int | None = None) -> Value | None:
        """Return a value; None without one."""
        topics = self._groups.get(group_id, epoch)
        partitions = None if topics is None else topics.get(where.topic, epoch)
        return None if partitions is None else partitions.get(where.partition, epoch)

    def put(self, group_id: str, where: TopicPartition, value: Value) -> None:
        """Put a value."""
        topics = self._groups.get(group_id)
        if topics is None:
            topics = TimelineMap[str, PartitionMap[Value]](self._timeline)
            self._groups.set(group_id, topics)
        partitions = topics.get(where.topic)
        if partitions is None:
            partitions = TimelineMap[int, Value](self._timeline)
            topics.set(where.topic, partitions)
        partitions.set(where.partition, value)

    def remove(self, group_id: str, where: TopicPartition) -> None:
        """Remove a value, if there is one."""
        topics = self._groups.get(group_id)
        partitions = None if topics is None else topics.get(where.topic)
        if topics is None or partitions is None:
            return
        partitions.remove(where.partition)
        if partitions.is_empty():
            topics.remove(where.topic)
        if topics.is_empty():
            self._groups.remove(group_id)

    def entries(self, group_id: str) -> list[tuple[TopicPartition, Value]]:
        """Return the newest values of a group with where they are."""
        topics = self._groups.get(group_id)
        if topics is None:
            return []
        return [
            (TopicPartition(topic, partition), value)
            for topic, partitions in topics.items()
            for partition, value in partitions.items()
        ]
