"""Records of ``__remote_log_metadata`` as kafka-dump-log prints them: texts of Java objects."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from kvorum.cli.dump.decoders import Payload
from kvorum.cli.dump.metadata_texts import UnreadableRecordError, read_framed
from kvorum.internal_topics.remote_log_metadata import REMOTE_LOG_RECORDS
from kvorum.internal_topics.states import REMOTE_PARTITION_DELETE_STATES, REMOTE_SEGMENT_STATES
from kvorum.wire.apis import message_class
from kvorum.wire.messages.remote_log_segment_metadata_record import RemoteLogSegmentMetadataRecord
from kvorum.wire.messages.remote_log_segment_metadata_snapshot_record import (
    RemoteLogSegmentMetadataSnapshotRecord,
)
from kvorum.wire.messages.remote_log_segment_metadata_update_record import (
    RemoteLogSegmentMetadataUpdateRecord,
)
from kvorum.wire.messages.remote_partition_delete_metadata_record import (
    RemotePartitionDeleteMetadataRecord,
)
from kvorum.wire.primitives import Message
from kvorum.wire.records import Record
from kvorum.wire.uuid_text import uuid_to_text

# The text of Java for a call of a method of null: the value of a tombstone.
_NO_VALUE: Final = (
    'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
    '"org.apache.kafka.common.record.internal.Record.value()" is null'
)


class _TopicIdPartition(Protocol):
    name: str
    id: bytes
    partition: int


class _SegmentId(Protocol):
    @property
    def topic_id_partition(self) -> _TopicIdPartition: ...
    @property
    def id(self) -> bytes: ...


class _LeaderEpoch(Protocol):
    leader_epoch: int
    offset: int


def decode_remote_log_metadata(record: Record) -> Payload:
    """Return the value as Kafka prints its object; for one that cannot be read, the error."""
    try:
        if record.value is None:
            raise UnreadableRecordError(_NO_VALUE)
        text = _message_text(read_framed(record.value, _class_of).message)
    except UnreadableRecordError as error:
        text = f"Error at offset {record.offset}, skipping. {error}"
    return Payload(None, text)


def _class_of(type_id: int) -> type[Message] | None:
    name = REMOTE_LOG_RECORDS.get(type_id)
    return None if name is None else message_class(name)


def _message_text(message: Message) -> str:
    match message:
        case RemoteLogSegmentMetadataRecord():
            return _segment_text(message)
        case RemoteLogSegmentMetadataUpdateRecord():
            return _update_text(message)
        case RemotePartitionDeleteMetadataRecord():
            return _deletion_text(message)
        case RemoteLogSegmentMetadataSnapshotRecord():
            return _snapshot_text(message)
        case _:
            raise TypeError(message.NAME)


def _segment_text(record: RemoteLogSegmentMetadataRecord) -> str:
    if record.start_offset < 0:
        raise UnreadableRecordError(
            f"Unexpected start offset = {record.start_offset}. StartOffset for a remote segment "
            "cannot be negative"
        )
    if record.end_offset < record.start_offset:
        raise UnreadableRecordError(
            f"Unexpected end offset = {record.end_offset}. EndOffset for a remote segment cannot "
            f"be less than startOffset = {record.start_offset}"
        )
    return _object_text(
        "RemoteLogSegmentMetadata",
        remoteLogSegmentId=_segment_id_text(record.remote_log_segment_id),
        startOffset=record.start_offset,
        endOffset=record.end_offset,
        brokerId=record.broker_id,
        maxTimestampMs=record.max_timestamp_ms,
        eventTimestampMs=record.event_timestamp_ms,
        segmentLeaderEpochs=_epochs_text(record.segment_leader_epochs),
        segmentSizeInBytes=record.segment_size_in_bytes,
        customMetadata=_custom_text(record.custom_metadata),
        state=_segment_state(record.remote_log_segment_state),
        txnIdxEmpty=str(record.txn_index_empty).lower(),
    )


def _update_text(record: RemoteLogSegmentMetadataUpdateRecord) -> str:
    return _object_text(
        "RemoteLogSegmentMetadataUpdate",
        remoteLogSegmentId=_segment_id_text(record.remote_log_segment_id),
        customMetadata=_custom_text(record.custom_metadata),
        state=_segment_state(record.remote_log_segment_state),
        eventTimestampMs=record.event_timestamp_ms,
        brokerId=record.broker_id,
    )


def _deletion_text(record: RemotePartitionDeleteMetadataRecord) -> str:
    state = REMOTE_PARTITION_DELETE_STATES.get(record.remote_partition_delete_state)
    if state is None:
        # Java says nothing about this null.
        raise UnreadableRecordError("null")
    return _object_text(
        "RemotePartitionDeleteMetadata",
        topicPartition=_partition_text(record.topic_id_partition),
        state=state,
        eventTimestampMs=record.event_timestamp_ms,
        brokerId=record.broker_id,
    )


def _snapshot_text(record: RemoteLogSegmentMetadataSnapshotRecord) -> str:
    return _object_text(
        "RemoteLogSegmentMetadataSnapshot",
        segmentId=uuid_to_text(record.segment_id),
        startOffset=record.start_offset,
        endOffset=record.end_offset,
        maxTimestampMs=record.max_timestamp_ms,
        segmentLeaderEpochs=_epochs_text(record.segment_leader_epochs),
        segmentSizeInBytes=record.segment_size_in_bytes,
        customMetadata=_custom_text(record.custom_metadata),
        state=_segment_state(record.remote_log_segment_state),
        txnIdxEmpty=str(record.txn_index_empty).lower(),
    )


def _object_text(name: str, **values: str | int) -> str:
    """Return the text of an object, its values in the order in which they are given."""
    return f"{name}{{{', '.join(f'{key}={value}' for key, value in values.items())}}}"


def _segment_id_text(segment: _SegmentId) -> str:
    return _object_text(
        "RemoteLogSegmentId",
        topicIdPartition=_partition_text(segment.topic_id_partition),
        id=uuid_to_text(segment.id),
    )


def _partition_text(partition: _TopicIdPartition) -> str:
    return f"{uuid_to_text(partition.id)}:{partition.name}-{partition.partition}"


def _epochs_text(entries: Sequence[_LeaderEpoch]) -> str:
    """Return the offsets by leader epoch, in ascending order of these; a later entry counts."""
    if not entries:
        raise UnreadableRecordError("segmentLeaderEpochs can not be null or empty")
    offsets: Mapping[int, int] = {entry.leader_epoch: entry.offset for entry in entries}
    return f"{{{', '.join(f'{epoch}={offset}' for epoch, offset in sorted(offsets.items()))}}}"


def _custom_text(metadata: bytes | None) -> str:
    if metadata is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(metadata)} bytes}}]"


def _segment_state(number: int) -> str:
    state = REMOTE_SEGMENT_STATES.get(number)
    if state is None:
        raise UnreadableRecordError("state can not be null")
    return state
