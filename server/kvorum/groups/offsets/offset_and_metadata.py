"""A committed offset (Kafka's OffsetAndMetadata)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvorum.groups.records import (
    EXPIRING_OFFSET_COMMIT_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    CoordinatorRecord,
)
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.uuid_text import ZERO_UUID

NO_EXPIRE_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1


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

    def to_record(self, group_id: str, topic: str, partition: int) -> CoordinatorRecord:
        """Return the record; one that expires by itself keeps neither leader epoch nor topic id."""
        expires = self.expire_timestamp != NO_EXPIRE_TIMESTAMP
        value = OffsetCommitValue(
            offset=self.committed_offset,
            leader_epoch=self.leader_epoch,
            metadata=self.metadata,
            commit_timestamp=self.commit_timestamp,
            expire_timestamp=self.expire_timestamp,
            topic_id=self.topic_id,
        )
        version = EXPIRING_OFFSET_COMMIT_VALUE_VERSION if expires else OFFSET_COMMIT_VALUE_VERSION
        return CoordinatorRecord(OffsetCommitKey(group_id, topic, partition), value, version)

    def has_other_topic_id(self, topic_id: bytes) -> bool:
        """Return whether the offset is of another topic that had the same name."""
        return ZERO_UUID not in {self.topic_id, topic_id} and self.topic_id != topic_id

    def is_expired(self, base_timestamp: int, now_ms: int, retention_ms: int) -> bool:
        """Return whether its time is over; its own expire timestamp counts first."""
        if self.expire_timestamp != NO_EXPIRE_TIMESTAMP:
            return now_ms >= self.expire_timestamp
        return now_ms - base_timestamp >= retention_ms
