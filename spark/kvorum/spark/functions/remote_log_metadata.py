"""The result of `remote_log_metadata_record`: a segment or a partition in remote storage."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.internal_topics.errors import InternalTopicError
from kvorum.internal_topics.remote_log_metadata import decode_remote_log_record
from kvorum.internal_topics.states import REMOTE_PARTITION_DELETE_STATES, REMOTE_SEGMENT_STATES
from kvorum.metadata.json_text import json_text
from kvorum.spark.arrow_types import INT, LONG, TEXT, TIMESTAMP, timestamp_us
from kvorum.spark.functions.record_function import (
    Column,
    Field,
    RecordFunction,
    Row,
    field,
    read_fields,
    structs,
    structs_of,
)

COLUMNS: Final = (
    Column("type", TEXT),
    Column("version", INT),
    Column("topic_name", TEXT),
    Column("topic_id", TEXT),
    Column("partition_id", INT),
    Column("segment_id", TEXT),
    Column("state", TEXT),
    Column("broker_id", INT),
    Column("event_timestamp", TIMESTAMP),
    Column("start_offset", LONG),
    Column("end_offset", LONG),
    Column("max_timestamp", TIMESTAMP),
    Column("segment_size_in_bytes", INT),
    Column(
        "segment_leader_epochs", structs_of(Column("leader_epoch", INT), Column("offset", LONG))
    ),
    Column("json", TEXT),
    Column("error", TEXT),
)

_EVENT = (
    field("broker_id", "value.brokerId"),
    field("event_timestamp", "value.eventTimestampMs", timestamp_us),
)
_SEGMENT_EVENT = (
    *_EVENT,
    field("topic_name", "value.remoteLogSegmentId.topicIdPartition.name"),
    field("topic_id", "value.remoteLogSegmentId.topicIdPartition.id"),
    field("partition_id", "value.remoteLogSegmentId.topicIdPartition.partition"),
    field("segment_id", "value.remoteLogSegmentId.id"),
    field("state", "value.remoteLogSegmentState", REMOTE_SEGMENT_STATES.get),
)
_CONTENTS = (
    field("start_offset", "value.startOffset"),
    field("end_offset", "value.endOffset"),
    field("max_timestamp", "value.maxTimestampMs", timestamp_us),
    field("segment_size_in_bytes", "value.segmentSizeInBytes"),
    field(
        "segment_leader_epochs",
        "value.segmentLeaderEpochs",
        structs({"leader_epoch": "leaderEpoch", "offset": "offset"}),
    ),
)

FIELDS: Final[Mapping[str, tuple[Field, ...]]] = MappingProxyType(
    {
        "REMOTE_LOG_SEGMENT_METADATA_RECORD": (*_SEGMENT_EVENT, *_CONTENTS),
        "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD": _SEGMENT_EVENT,
        "REMOTE_PARTITION_DELETE_METADATA_RECORD": (
            *_EVENT,
            field("topic_name", "value.topicIdPartition.name"),
            field("topic_id", "value.topicIdPartition.id"),
            field("partition_id", "value.topicIdPartition.partition"),
            field("state", "value.remotePartitionDeleteState", REMOTE_PARTITION_DELETE_STATES.get),
        ),
        "REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD": (
            *_EVENT,
            *_CONTENTS,
            field("segment_id", "value.segmentId"),
            field("state", "value.remoteLogSegmentState", REMOTE_SEGMENT_STATES.get),
        ),
    }
)


def remote_log_metadata_row(value: bytes | None) -> Row | None:
    """Return the result for one value of ``__remote_log_metadata``; null for null."""
    if value is None:
        return None
    try:
        record = decode_remote_log_record(value)
    except InternalTopicError as error:
        return {"error": str(error)}
    return {
        "type": record.type,
        "version": record.version,
        "json": json_text(record.fields),
        **read_fields(FIELDS[record.type], {"value": record.fields}),
    }


REMOTE_LOG_METADATA_RECORD: Final = RecordFunction(
    name="kvorum_remote_log_metadata_record",
    arguments=("value",),
    columns=COLUMNS,
    row=remote_log_metadata_row,
)
