"""OffsetFetch for one group: some partitions, or all that have an offset."""

from dataclasses import dataclass
from typing import Final

from kvorum.groups.classic_group.state import ClassicGroupState
from kvorum.groups.offsets.offset_and_metadata import OffsetAndMetadata
from kvorum.groups.offsets.offset_table import TopicPartition
from kvorum.groups.offsets.store import OffsetStore
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kvorum.wire.uuid_text import ZERO_UUID

INVALID_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """A view of the offsets: the newest ones if they have to be stable, else what is committed."""

    offsets: OffsetStore
    require_stable: bool

    @property
    def epoch(self) -> int | None:
        """The epoch that is read."""
        return None if self.require_stable else self.offsets.shard.timeline.committed_offset

    def fetch(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        """Return a group's offsets; of a group that is not known, none and no error."""
        group = self.offsets.shard.groups.get(request.group_id, self.epoch)
        is_known = group is not None and not group.is_in(ClassicGroupState.DEAD)
        if request.topics is None:
            topics = self._all_topics(request.group_id) if is_known else []
            return OffsetFetchResponseGroup(request.group_id, topics)
        topics = [
            OffsetFetchResponseTopics(
                topic.name,
                topic.topic_id,
                [
                    self._partition(
                        request.group_id,
                        TopicPartition(topic.name, partition),
                        topic.topic_id,
                        is_known=is_known,
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
        return OffsetFetchResponseGroup(request.group_id, topics)

    def _all_topics(self, group_id: str) -> list[OffsetFetchResponseTopics]:
        topics = self.offsets.committed.topics(group_id, self.epoch)
        if topics is None:
            return []
        return [
            OffsetFetchResponseTopics(
                topic,
                ZERO_UUID,
                [
                    self._answer(group_id, TopicPartition(topic, partition), offset)
                    for partition, offset in partitions.items(self.epoch)
                ],
            )
            for topic, partitions in topics.items(self.epoch)
        ]

    def _partition(
        self, group_id: str, where: TopicPartition, topic_id: bytes, *, is_known: bool
    ) -> OffsetFetchResponsePartitions:
        offset = self.offsets.committed.get(group_id, where, self.epoch) if is_known else None
        if offset is not None and offset.has_other_topic_id(topic_id):
            offset = None
        return self._answer(group_id, where, offset)

    def _answer(
        self, group_id: str, where: TopicPartition, offset: OffsetAndMetadata | None
    ) -> OffsetFetchResponsePartitions:
        is_unstable = self.require_stable and self.offsets.pending.has(group_id, where)
        if offset is None or is_unstable:
            return OffsetFetchResponsePartitions(
                partition_index=where.partition,
                committed_offset=INVALID_OFFSET,
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT if is_unstable else ErrorCode.NONE,
            )
        return OffsetFetchResponsePartitions(
            partition_index=where.partition,
            committed_offset=offset.committed_offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
        )
