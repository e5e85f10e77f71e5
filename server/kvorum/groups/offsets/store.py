"""All offsets of a shard, as its records say (the state of Kafka's OffsetMetadataManager)."""

from typing import Final

from kvorum.groups.offsets.offset_and_metadata import OffsetAndMetadata
from kvorum.groups.offsets.offset_table import OffsetTable, TopicPartition
from kvorum.groups.records import CoordinatorRecord, offset_commit_tombstone
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeline import Timeline, TimelineMap
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kvorum.wire.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.uuid_text import ZERO_UUID

NO_PRODUCER_ID: Final = -1


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
        """Apply a record; a value for a group that is not known makes a simple group."""
        where = TopicPartition(key.topic, key.partition)
        if value is None:
            self.committed.remove(key.group, where)
            self.pending.clear(key.group, where)
            return
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

    def tombstones_of_topic(self, topic: TopicImage) -> list[CoordinatorRecord]:
        """Return the records that end all groups' offsets of a topic that is gone.

        Another one may have the same name.
        """
        return [
            offset_commit_tombstone(group_id, *where)
            for table in (self.committed, *self.pending.tables())
            for group_id in table.groups()
            for where, offset in table.entries(group_id)
            if where.topic == topic.name and offset.topic_id in {ZERO_UUID, topic.id}
        ]


def _current(value: OffsetCommitValue | LegacyOffsetCommitValue) -> OffsetCommitValue:
    if isinstance(value, OffsetCommitValue):
        return value
    return OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )
