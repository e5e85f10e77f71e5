"""The result of `share_group_state_record`: how far a share group is in a partition."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.internal_topics.coordinator_records import SHARE_GROUP_STATE
from kvorum.internal_topics.states import DELIVERY_STATES
from kvorum.spark.arrow_types import INT, LONG, TEXT, TIMESTAMP, timestamp_us
from kvorum.spark.functions.coordinator_rows import coordinator_function
from kvorum.spark.functions.record_function import Column, Field, field, structs, structs_of

COLUMNS: Final = (
    Column("group_id", TEXT),
    Column("topic_id", TEXT),
    Column("partition_id", INT),
    Column("snapshot_epoch", INT),
    Column("state_epoch", INT),
    Column("leader_epoch", INT),
    Column("start_offset", LONG),
    Column("delivery_complete_count", INT),
    Column("create_timestamp", TIMESTAMP),
    Column("write_timestamp", TIMESTAMP),
    Column(
        "state_batches",
        structs_of(
            Column("first_offset", LONG),
            Column("last_offset", LONG),
            Column("delivery_state", TEXT),
            Column("delivery_count", INT),
        ),
    ),
)

_UPDATE = (
    field("group_id", "key.groupId"),
    field("topic_id", "key.topicId"),
    field("partition_id", "key.partition"),
    field("snapshot_epoch", "value.snapshotEpoch"),
    field("leader_epoch", "value.leaderEpoch"),
    field("start_offset", "value.startOffset"),
    field("delivery_complete_count", "value.deliveryCompleteCount"),
    field(
        "state_batches",
        "value.stateBatches",
        structs(
            {
                "first_offset": "firstOffset",
                "last_offset": "lastOffset",
                "delivery_state": "deliveryState",
                "delivery_count": "deliveryCount",
            },
            {"delivery_state": DELIVERY_STATES.get},
        ),
    ),
)

FIELDS: Final[Mapping[str, tuple[Field, ...]]] = MappingProxyType(
    {
        "SHARE_SNAPSHOT": (
            *_UPDATE,
            field("state_epoch", "value.stateEpoch"),
            field("create_timestamp", "value.createTimestamp", timestamp_us),
            field("write_timestamp", "value.writeTimestamp", timestamp_us),
        ),
        "SHARE_UPDATE": _UPDATE,
    }
)

SHARE_GROUP_STATE_RECORD: Final = coordinator_function(
    "kvorum_share_group_state_record", SHARE_GROUP_STATE, COLUMNS, FIELDS
)
