"""Types of records: their names and numbers, and the fields that have columns of their own."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.record_frame import record_type, record_type_name
from kvorum.wire.apis import METADATA_RECORDS
from kvorum.wire.primitives import Message
from kvorum.wire.records import ControlRecordType
from kvorum.wire.records.control import message_class

METADATA: Final = "metadata"
CONTROL: Final = "control"

NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {number: record_type_name(record_type(number)) for number in METADATA_RECORDS}
)
"""The name in Kafka's dumps of every type of metadata record, by its number."""

NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {name: number for number, name in NAMES.items()}
)

CONTROL_NAMES: Final = frozenset(kind.name for kind in ControlRecordType)


def message_classes() -> dict[str, type[Message]]:
    """Return the class of the messages of every type of record, by its name in the table."""
    metadata = {name: record_type(number) for number, name in NAMES.items()}
    return metadata | {kind.name: message_class(kind) for kind in ControlRecordType}


# Record type -> column -> field in Kafka's JSON form. Types without such fields are left out.
SUBJECT_FIELDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "REGISTER_BROKER_RECORD": {"broker_id": "brokerId"},
        "UNREGISTER_BROKER_RECORD": {"broker_id": "brokerId"},
        "TOPIC_RECORD": {"topic_name": "name", "topic_id": "topicId"},
        "PARTITION_RECORD": {
            "topic_id": "topicId",
            "partition_id": "partitionId",
            "leader": "leader",
            "isr": "isr",
            "replicas": "replicas",
            "leader_epoch": "leaderEpoch",
            "partition_epoch": "partitionEpoch",
        },
        "CONFIG_RECORD": {
            "resource_type": "resourceType",
            "resource_name": "resourceName",
            "name": "name",
        },
        "PARTITION_CHANGE_RECORD": {
            "topic_id": "topicId",
            "partition_id": "partitionId",
            "leader": "leader",
            "isr": "isr",
            "replicas": "replicas",
        },
        "FENCE_BROKER_RECORD": {"broker_id": "id"},
        "UNFENCE_BROKER_RECORD": {"broker_id": "id"},
        "REMOVE_TOPIC_RECORD": {"topic_id": "topicId"},
        "DELEGATION_TOKEN_RECORD": {"name": "tokenId"},
        "USER_SCRAM_CREDENTIAL_RECORD": {"name": "name"},
        "FEATURE_LEVEL_RECORD": {"name": "name"},
        "CLIENT_QUOTA_RECORD": {"name": "key"},
        "PRODUCER_IDS_RECORD": {"broker_id": "brokerId"},
        "BROKER_REGISTRATION_CHANGE_RECORD": {"broker_id": "brokerId"},
        "ACCESS_CONTROL_ENTRY_RECORD": {
            "resource_type": "resourceType",
            "resource_name": "resourceName",
            "name": "id",
        },
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": {"name": "id"},
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": {"name": "name"},
        "BEGIN_TRANSACTION_RECORD": {"name": "name"},
        "REMOVE_DELEGATION_TOKEN_RECORD": {"name": "tokenId"},
        "REGISTER_CONTROLLER_RECORD": {"broker_id": "controllerId"},
        "CLEAR_ELR_RECORD": {"topic_name": "topicName"},
        "LEADER_CHANGE": {"broker_id": "leaderId"},
    }
)
