"""Requests, good and bad, that a real node and ours must answer alike; data, by API key.

Each case gives only the fields that are not at their default, by the names of our classes. Both
nodes have id 1 and a topic `orders` of two partitions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from kvorum.wire.api_keys import ApiKey

# The edge of JSON: values of fields, nested as the schema nests them.
Fields: TypeAlias = Mapping[str, Any]

_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP, _UNKNOWN = 2, 4, 8, 16, 32, 99
KNOWN_USER = "known"
"""A user that has SCRAM credentials on both nodes."""
_NO_SUCH = {"name": "nowhere"}


def _describe_configs(*resources: tuple[int, str], synonyms: bool = False) -> Fields:
    rows = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        for kind, name in resources
    ]
    return {"resources": rows, "include_synonyms": synonyms}


def _offsets_at(timestamp: int) -> Fields:
    partitions = [
        {"partition_index": index, "current_leader_epoch": -1, "timestamp": timestamp}
        for index in (0, 9)
    ]
    rows = [{"name": name, "partitions": partitions} for name in ("orders", "nowhere")]
    return {"replica_id": -1, "topics": rows}


def _alter(kind: int, name: str, *configs: Fields) -> Fields:
    return {"resource_type": kind, "resource_name": name, "configs": list(configs)}


def _quota(entity: str, match: int, name: str | None) -> Fields:
    return {"components": [{"entity_type": entity, "match_type": match, "match": name}]}


def _feature(name: str, level: int, upgrade_type: int) -> Fields:
    row = {"feature": name, "max_version_level": level, "upgrade_type": upgrade_type}
    return {"feature_updates": [row], "validate_only": False}


_ACL = {
    "resource_type": _TOPIC,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_ACL_FILTER = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}

REQUESTS: Mapping[int, Sequence[Fields]] = {
    ApiKey.LIST_OFFSETS: [_offsets_at(timestamp) for timestamp in (-1, -2, -3, -4, -5, -9, 100)],
    ApiKey.METADATA: [
        {"topics": []},
        {"topics": None},
        {
            "topics": [{"name": "orders"}, _NO_SUCH, {"name": "b c"}],
            "allow_auto_topic_creation": False,
        },
        {"topics": [{"name": "orders"}], "include_topic_authorized_operations": True},
    ],
    ApiKey.API_VERSIONS: [
        {"client_software_name": "raw", "client_software_version": "1"},
        {"client_software_name": "-raw-", "client_software_version": "1"},
        {},
    ],
    ApiKey.CREATE_TOPICS: [
        {},
        {
            "topics": [
                {"name": "orders", "num_partitions": 1, "replication_factor": 1},
                {"name": "b c", "num_partitions": 1, "replication_factor": 1},
                {"name": "many", "num_partitions": 1, "replication_factor": 5},
                {"name": "none", "num_partitions": 0, "replication_factor": 1},
                {"name": "fine", "num_partitions": 3, "replication_factor": 1},
            ],
            "timeout_ms": 5000,
            "validate_only": True,
        },
    ],
    ApiKey.DELETE_TOPICS: [
        {"topic_names": ["nowhere"], "timeout_ms": 5000},
        {"topics": [_NO_SUCH, {"topic_id": bytes(15) + b"\x07"}], "timeout_ms": 5000},
    ],
    ApiKey.DESCRIBE_ACLS: [_ACL_FILTER],
    ApiKey.CREATE_ACLS: [{}, {"creations": [_ACL]}],
    ApiKey.DELETE_ACLS: [{}, {"filters": [_ACL_FILTER]}],
    ApiKey.DESCRIBE_CONFIGS: [
        {},
        _describe_configs((_TOPIC, "orders"), synonyms=True),
        _describe_configs((_TOPIC, "nowhere"), (_TOPIC, "b c")),
        _describe_configs((_BROKER, "7"), (_BROKER, "x"), (_BROKER_LOGGER, "")),
        _describe_configs((_CLIENT_METRICS, ""), (_GROUP, ""), (_CLIENT_METRICS, "a")),
        _describe_configs((_UNKNOWN, "")),
    ],
    ApiKey.ALTER_CONFIGS: [
        {},
        {
            "resources": [
                _alter(_BROKER, "7", {"name": "no.such", "value": "1"}),
                _alter(_BROKER, "9"),
                _alter(_TOPIC, "nowhere"),
                _alter(_UNKNOWN, "9"),
            ]
        },
    ],
    ApiKey.CREATE_PARTITIONS: [
        {},
        {
            "topics": [
                {"name": "orders", "count": 1, "assignments": None},
                {"name": "nowhere", "count": 4, "assignments": None},
            ],
            "timeout_ms": 5000,
        },
    ],
    ApiKey.ELECT_LEADERS: [
        {"topic_partitions": []},
        {
            "topic_partitions": [
                {"topic": "orders", "partitions": [0, 5]},
                {"topic": "nowhere", "partitions": [0]},
            ]
        },
    ],
    ApiKey.INCREMENTAL_ALTER_CONFIGS: [
        {},
        {
            "resources": [
                _alter(_BROKER, "9"),
                _alter(_UNKNOWN, "9"),
                _alter(_TOPIC, "nowhere"),
                _alter(
                    _TOPIC, "orders", {"name": "retention.ms", "config_operation": 0, "value": "x"}
                ),
            ]
        },
    ],
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: [
        {},
        {
            "topics": [
                {"name": "orders", "partitions": [{"partition_index": 0, "replicas": [9]}]},
                {"name": "orders", "partitions": [{"partition_index": 1, "replicas": None}]},
                {"name": "nowhere", "partitions": [{"partition_index": 0, "replicas": [9]}]},
            ]
        },
    ],
    ApiKey.LIST_PARTITION_REASSIGNMENTS: [
        {"topics": None},
        {"topics": [{"name": "orders", "partition_indexes": [0]}]},
        {"topics": [{"name": "nowhere", "partition_indexes": [0]}]},
    ],
    ApiKey.DESCRIBE_CLIENT_QUOTAS: [
        {},
        _quota("user", 0, "u"),
        _quota("", 0, "u"),
        _quota("nothing", 2, None),
        _quota("user", 9, None),
        _quota("user", 1, "x"),
    ],
    ApiKey.ALTER_CLIENT_QUOTAS: [
        {},
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "a"}],
                    "ops": [{"key": "no.such", "value": 1.0, "remove": False}],
                }
            ]
        },
    ],
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: [
        {"users": None},
        {"users": [{"name": "a"}]},
        {"users": [{"name": "a"}, {"name": "a"}]},
        {"users": [{"name": KNOWN_USER}, {"name": "a"}]},
    ],
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: [{}, {"deletions": [{"name": "u", "mechanism": 1}]}],
    ApiKey.DESCRIBE_QUORUM: [
        {},
        {"topics": [{"topic_name": "orders", "partitions": [{"partition_index": 0}]}]},
    ],
    ApiKey.UPDATE_FEATURES: [
        {},
        _feature("metadata.version", 7, 1),
        _feature("no.such", 1, 1),
        _feature("kraft.version", 0, 2),
        _feature("metadata.version", 30, 1),
    ],
    ApiKey.DESCRIBE_CLUSTER: [
        {},
        {"endpoint_type": 2},
        {"endpoint_type": 7},
        {"include_cluster_authorized_operations": True},
        {"include_fenced_brokers": True},
    ],
    ApiKey.UNREGISTER_BROKER: [{"broker_id": 77}],
    ApiKey.LIST_CONFIG_RESOURCES: [
        {},
        {"resource_types": [_TOPIC, _BROKER]},
        {"resource_types": [_UNKNOWN]},
    ],
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: [
        {},
        {"topics": [{"name": "orders"}, _NO_SUCH, {"name": "b c"}]},
        {"topics": [{"name": "orders"}], "response_partition_limit": 1},
        {"topics": [], "cursor": {"topic_name": "orders", "partition_index": 1}},
        {"topics": [{"name": "orders"}], "cursor": {"topic_name": "orders", "partition_index": -1}},
    ],
}
