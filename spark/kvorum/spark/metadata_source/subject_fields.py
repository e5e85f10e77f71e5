"""Fields of metadata and control records that have columns of their own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
