"""The result of `consumer_offsets_record`: committed offsets, and the state of groups."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.internal_topics.coordinator_records import CONSUMER_OFFSETS
from kvorum.internal_topics.states import MEMBER_STATES, STREAMS_MEMBER_STATES
from kvorum.spark.arrow_types import INT, INTS, LONG, TEXT, TEXTS, TIMESTAMP, timestamp_us
from kvorum.spark.functions.coordinator_rows import coordinator_function
from kvorum.spark.functions.record_function import Column, Field, field, structs, structs_of

COLUMNS: Final = (
    Column("group_id", TEXT),
    Column("topic_name", TEXT),
    Column("topic_id", TEXT),
    Column("partition_id", INT),
    Column("member_id", TEXT),
    Column("offset", LONG),
    Column("leader_epoch", INT),
    Column("metadata", TEXT),
    Column("commit_timestamp", TIMESTAMP),
    Column("expire_timestamp", TIMESTAMP),
    Column("protocol_type", TEXT),
    Column("protocol", TEXT),
    Column("generation", INT),
    Column("leader", TEXT),
    Column("current_state_timestamp", TIMESTAMP),
    Column(
        "members",
        structs_of(
            Column("member_id", TEXT),
            Column("instance_id", TEXT),
            Column("client_id", TEXT),
            Column("client_host", TEXT),
        ),
    ),
    Column("epoch", INT),
    Column("topology_epoch", INT),
    Column("assignment_epoch", INT),
    Column("assignment_timestamp", TIMESTAMP),
    Column("member_epoch", INT),
    Column("previous_member_epoch", INT),
    Column("member_state", TEXT),
    Column("assigned_partitions", structs_of(Column("topic_id", TEXT), Column("partitions", INTS))),
    Column("instance_id", TEXT),
    Column("rack_id", TEXT),
    Column("client_id", TEXT),
    Column("client_host", TEXT),
    Column("process_id", TEXT),
    Column("subscribed_topic_names", TEXTS),
    Column("subscribed_topic_regex", TEXT),
)

_GROUP = (field("group_id", "key.groupId"),)
_MEMBER = (*_GROUP, field("member_id", "key.memberId"))
_GROUP_EPOCH = (*_GROUP, field("epoch", "value.epoch"))
_TARGET_EPOCH = (
    *_GROUP,
    field("assignment_epoch", "value.assignmentEpoch"),
    field("assignment_timestamp", "value.assignmentTimestamp", timestamp_us),
)
_COMMIT = (
    field("group_id", "key.group"),
    field("topic_name", "key.topic"),
    field("partition_id", "key.partition"),
    field("offset", "value.offset"),
    field("metadata", "value.metadata"),
    field("commit_timestamp", "value.commitTimestamp", timestamp_us),
)
_PARTITIONS = structs({"topic_id": "topicId", "partitions": "partitions"})
_TARGET_PARTITIONS = (*_MEMBER, field("assigned_partitions", "value.topicPartitions", _PARTITIONS))
_MEMBER_EPOCHS = (
    *_MEMBER,
    field("member_epoch", "value.memberEpoch"),
    field("previous_member_epoch", "value.previousMemberEpoch"),
)
_MEMBER_ASSIGNMENT = (
    *_MEMBER_EPOCHS,
    field("member_state", "value.state", MEMBER_STATES.get),
    field("assigned_partitions", "value.assignedPartitions", _PARTITIONS),
)
_CLIENT = (
    *_MEMBER,
    field("rack_id", "value.rackId"),
    field("client_id", "value.clientId"),
    field("client_host", "value.clientHost"),
)
_SUBSCRIPTION = field("subscribed_topic_names", "value.subscribedTopicNames")
_INSTANCE = field("instance_id", "value.instanceId")

FIELDS: Final[Mapping[str, tuple[Field, ...]]] = MappingProxyType(
    {
        "LEGACY_OFFSET_COMMIT": _COMMIT,
        "OFFSET_COMMIT": (
            *_COMMIT,
            field("topic_id", "value.topicId"),
            field("leader_epoch", "value.leaderEpoch"),
            field("expire_timestamp", "value.expireTimestamp", timestamp_us),
        ),
        "GROUP_METADATA": (
            field("group_id", "key.group"),
            field("protocol_type", "value.protocolType"),
            field("protocol", "value.protocol"),
            field("generation", "value.generation"),
            field("leader", "value.leader"),
            field("current_state_timestamp", "value.currentStateTimestamp", timestamp_us),
            field(
                "members",
                "value.members",
                structs(
                    {
                        "member_id": "memberId",
                        "instance_id": "groupInstanceId",
                        "client_id": "clientId",
                        "client_host": "clientHost",
                    }
                ),
            ),
        ),
        "CONSUMER_GROUP_METADATA": _GROUP_EPOCH,
        "CONSUMER_GROUP_PARTITION_METADATA": _GROUP,
        "CONSUMER_GROUP_MEMBER_METADATA": (
            *_CLIENT,
            _INSTANCE,
            _SUBSCRIPTION,
            field("subscribed_topic_regex", "value.subscribedTopicRegex"),
        ),
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA": _TARGET_EPOCH,
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER": _TARGET_PARTITIONS,
        "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT": _MEMBER_ASSIGNMENT,
        "SHARE_GROUP_MEMBER_METADATA": (*_CLIENT, _SUBSCRIPTION),
        "SHARE_GROUP_METADATA": _GROUP_EPOCH,
        "SHARE_GROUP_TARGET_ASSIGNMENT_METADATA": _TARGET_EPOCH,
        "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER": _TARGET_PARTITIONS,
        "SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT": _MEMBER_ASSIGNMENT,
        "SHARE_GROUP_STATE_PARTITION_METADATA": _GROUP,
        "CONSUMER_GROUP_REGULAR_EXPRESSION": (
            *_GROUP,
            field("subscribed_topic_regex", "key.regularExpression"),
            field("subscribed_topic_names", "value.topics"),
        ),
        "STREAMS_GROUP_METADATA": _GROUP_EPOCH,
        "STREAMS_GROUP_MEMBER_METADATA": (
            *_CLIENT,
            _INSTANCE,
            field("topology_epoch", "value.topologyEpoch"),
            field("process_id", "value.processId"),
        ),
        "STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA": _TARGET_EPOCH,
        "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER": _MEMBER,
        "STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT": (
            *_MEMBER_EPOCHS,
            field("member_state", "value.state", STREAMS_MEMBER_STATES.get),
        ),
        "STREAMS_GROUP_TOPOLOGY": (*_GROUP, field("topology_epoch", "value.epoch")),
    }
)

CONSUMER_OFFSETS_RECORD: Final = coordinator_function(
    "kvorum_consumer_offsets_record", CONSUMER_OFFSETS, COLUMNS, FIELDS
)
