"""All offsets of a shard, as its records say (the state of Kafka's OffsetMetadataManager)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.timeline import Timeline, TimelineMap
from kvorum.groups.records import offset_commit_tombstone
from kvorum.groups.shard_state import ShardState
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kvorum.wire.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.uuid_text import ZERO_UUID

NO_EXPIRE_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1
Value = TypeVar("Value")

PartitionMap: TypeAlias = TimelineMap[int, Value]
TopicMap: TypeAlias = TimelineMap[str, PartitionMap[Value]]
NO_PRODUCER_ID: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetAndMetadata:
    """An offset with what was committed beside it; times in milliseconds.

    `leader_epoch` and `expire_timestamp` are -1, and `topic_id` is zero, where they are not known.
    `record_offset` is where the record is in the log.
    """

    committed_offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp: int
    expire_timestamp: int = NO_EXPIRE_TIMESTAMP
    topic_id: bytes = ZERO_UUID
    record_offset: int = -1

    @classmethod
    def from_record(cls, record_offset: int, value: OffsetCommitValue) -> OffsetAndMetadata:
        """Return the offset of a record."""
        return cls(
            committed_offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp=value.commit_timestamp,
            expire_timestamp=value.expire_timestamp,
            topic_id=value.topic_id,
            record_offset=record_offset,
        )

    def has_other_topic_id(self, topic_id: bytes) -> bool:
        """Return whether the offset is of another topic that had the same name."""
        return ZERO_UUID not in {self.topic_id, topic_id} and self.topic_id != topic_id

    def is_expired(self, base_timestamp: int, now_ms: int, retention_ms: int) -> bool:
        """Return whether its time is over; its own expire timestamp counts first."""
        if self.expire_timestamp != NO_EXPIRE_TIMESTAMP:
            return now_ms >= self.expire_timestamp
        return now_ms - base_timestamp >= retention_ms


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
        """The number of values of all groups, for which partitions are not gone through."""
        return sum(
            partitions.newest_count
            for _, topics in self._groups.items()
            for partitions in topics.values()
        )

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


class PendingOffsets:
    """Offsets by producer id, and which producers have one for a partition."""

    def __init__(self, timeline: Timeline) -> None:
        self.open_transactions = OffsetTable[frozenset[int]](timeline)
        """Producer ids by group, topic and partition."""
        self._timeline = timeline
        self._producers = TimelineMap[int, OffsetTable[OffsetAndMetadata]](timeline)

    def tables(self) -> list[OffsetTable[OffsetAndMetadata]]:
        """Return the offsets of each producer."""
        return [table for _, table in self._producers.items()]

    def has_group(self, group_id: str) -> bool:
        """Return whether a transaction with an offset of the group is open."""
        return self.open_transactions.topics(group_id) is not None

    def has(self, group_id: str, where: TopicPartition) -> bool:
        """Return whether a transaction with an offset of the partition is open."""
        return self.open_transactions.get(group_id, where) is not None

    def put(
        self, producer_id: int, group_id: str, where: TopicPartition, value: OffsetAndMetadata
    ) -> None:
        """Keep an offset until the producer's marker comes."""
        table = self._producers.get(producer_id)
        if table is None:
            table = OffsetTable[OffsetAndMetadata](self._timeline)
            self._producers.set(producer_id, table)
        table.put(group_id, where, value)
        producers = self.open_transactions.get(group_id, where) or frozenset()
        self.open_transactions.put(group_id, where, producers | {producer_id})

    def clear(self, group_id: str, where: TopicPartition) -> None:
        """Drop the offsets that all producers have for a partition."""
        for producer_id in self.open_transactions.get(group_id, where) or ():
            table = self._producers.get(producer_id)
            if table is not None:
                table.remove(group_id, where)
        self.open_transactions.remove(group_id, where)

    def end(self, producer_id: int) -> list[tuple[str, TopicPartition, OffsetAndMetadata]]:
        """Drop the offsets of a producer and return them."""
        table = self._producers.remove(producer_id)
        if table is None:
            return []
        ended = [
            (group_id, where, value)
            for group_id in table.groups()
            for where, value in table.entries(group_id)
        ]
        for group_id, where, _ in ended:
            self._remove_producer(producer_id, group_id, where)
        return ended

    def _remove_producer(self, producer_id: int, group_id: str, where: TopicPartition) -> None:
        producers = self.open_transactions.get(group_id, where)
        if producers is None:
            return
        others = producers - {producer_id}
        if others:
            self.open_transactions.put(group_id, where, others)
        else:
            self.open_transactions.remove(group_id, where)


class OffsetStore:
    """Committed offsets, and those of open transactions."""

    def __init__(self, shard: ShardState) -> None:
        self.shard = shard
        self.committed = OffsetTable[OffsetAndMetadata](shard.timeline)
        self.pending = PendingOffsets(shard.timeline)

    def replay(
        self,
        record_offset: int,
        producer_id: int,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        now_ms: int,
    ) -> None:
        """Apply a record; a value for a group that is not known makes a simple group.

        A group of another protocol keeps its offsets, and nothing else is known of it.
        """
        where = TopicPartition(key.topic, key.partition)
        if value is None:
            self.committed.remove(key.group, where)
            self.pending.clear(key.group, where)
            return
        if key.group not in self.shard.groups_of_other_protocols:
            self.shard.get_or_create_group(key.group, now_ms)
        offset = OffsetAndMetadata.from_record(record_offset, _current(value))
        if producer_id == NO_PRODUCER_ID:
            self.committed.put(key.group, where, offset)
        else:
            self.pending.put(producer_id, key.group, where, offset)

    def replay_end_transaction_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """End a producer's transaction; what was committed later than its offsets stays."""
        for group_id, where, offset in self.pending.end(producer_id):
            existing = self.committed.get(group_id, where)
            is_newer = existing is None or offset.record_offset > existing.record_offset
            if is_commit and is_newer:
                self.committed.put(group_id, where, offset)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the records that end all offsets of a group."""
        places = [where for where, _ in self.committed.entries(group_id)]
        places += [
            where
            for where, _ in self.pending.open_transactions.entries(group_id)
            if self.committed.get(group_id, where) is None
        ]
        return [offset_commit_tombstone(group_id, *where) for where in places]

    def tombstones_of_topics(self, topics: Iterable[TopicImage]) -> list[CoordinatorRecord]:
        """Return the records that end all groups' offsets of topics that are gone, topic by topic.

        Others may have the same names. However many topics there are, the topics of each group are
        gone through once.
        """
        found: dict[bytes, list[CoordinatorRecord]] = {}
        by_name: dict[str, list[TopicImage]] = {}
        for topic in topics:
            found[topic.id] = []
            by_name.setdefault(topic.name, []).append(topic)
        for group_id, name, partitions in self._partitions_by_topic():
            for topic in by_name.get(name, ()):
                found[topic.id] += [
                    offset_commit_tombstone(group_id, name, partition)
                    for partition, offset in partitions.items()
                    if offset.topic_id in {ZERO_UUID, topic.id}
                ]
        return [record for records in found.values() for record in records]

    def _partitions_by_topic(
        self,
    ) -> Iterator[tuple[str, str, PartitionMap[OffsetAndMetadata]]]:
        """Yield groups with the names of topics and the offsets of these, committed ones first."""
        for table in (self.committed, *self.pending.tables()):
            for group_id in table.groups():
                topics = table.topics(group_id)
                for name, partitions in () if topics is None else topics.items():
                    yield group_id, name, partitions


def _current(value: OffsetCommitValue | LegacyOffsetCommitValue) -> OffsetCommitValue:
    if isinstance(value, OffsetCommitValue):
        return value
    return OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )
