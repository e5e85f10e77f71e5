"""Fields that name the subject of a metadata or control record, and their columns."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

KEY_COLUMNS: Final = (
    "topic_name",
    "topic_id",
    "partition_id",
    "node_id",
    "resource_type",
    "resource_name",
    "name",
)

# Record type -> column -> field in Kafka's JSON form. Types without a subject are left out.
KEY_FIELDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "REGISTER_BROKER_RECORD": {"node_id": "brokerId"},
        "UNREGISTER_BROKER_RECORD": {"node_id": "brokerId"},
        "TOPIC_RECORD": {"topic_name": "name", "topic_id": "topicId"},
        "PARTITION_RECORD": {"topic_id": "topicId", "partition_id": "partitionId"},
        "CONFIG_RECORD": {
            "resource_type": "resourceType",
            "resource_name": "resourceName",
            "name": "name",
        },
        "PARTITION_CHANGE_RECORD": {"topic_id": "topicId", "partition_id": "partitionId"},
        "FENCE_BROKER_RECORD": {"node_id": "id"},
        "UNFENCE_BROKER_RECORD": {"node_id": "id"},
        "REMOVE_TOPIC_RECORD": {"topic_id": "topicId"},
        "DELEGATION_TOKEN_RECORD": {"name": "tokenId"},
        "USER_SCRAM_CREDENTIAL_RECORD": {"name": "name"},
        "FEATURE_LEVEL_RECORD": {"name": "name"},
        "CLIENT_QUOTA_RECORD": {"name": "key"},
        "PRODUCER_IDS_RECORD": {"node_id": "brokerId"},
        "BROKER_REGISTRATION_CHANGE_RECORD": {"node_id": "brokerId"},
        "ACCESS_CONTROL_ENTRY_RECORD": {
            "resource_type": "resourceType",
            "resource_name": "resourceName",
            "name": "id",
        },
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": {"name": "id"},
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": {"name": "name"},
        "BEGIN_TRANSACTION_RECORD": {"name": "name"},
        "REMOVE_DELEGATION_TOKEN_RECORD": {"name": "tokenId"},
        "REGISTER_CONTROLLER_RECORD": {"node_id": "controllerId"},
        "CLEAR_ELR_RECORD": {"topic_name": "topicName"},
        "LEADER_CHANGE": {"node_id": "leaderId"},
    }
)
