"""Good requests of every kind, and all that differ from them in one field at one of its limits."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from tests.interop.differential.limits import Path, changed_bodies
from tests.interop.differential.script import (
    API_KEYS,
    TIMEOUT_MS,
    Script,
    Step,
    created,
    directory,
    features,
    heartbeat,
    registration,
    started,
    topic,
)
from tests.interop.differential.view import uuid_of

from kvorum.wire.apis import request_class
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

KIND: Final = "bad-input"
ZERO: Final = uuid_to_text(ZERO_UUID)
SALTED: Final = "c2FsdHNhbHRzYWx0c2FsdA=="
CLUSTER: Final = (
    *(step for broker in (1, 2, 3) for step in started(broker, directories=2)),
    created(topic("a", [[1, 2], [2, 3]]), topic("b", [[1]])),
)
PARTITION: Final = {"partitionIndex": 0, "replicas": [2, 3]}
CONFIG: Final = {"name": "retention.ms", "value": "60000"}
SET: Final = {**CONFIG, "configOperation": 0}
IN_SYNC: Final = {"brokerId": 1, "brokerEpoch": "$epoch:1"}

ACL_FILTER: Final = {
    "resourceTypeFilter": 2,
    "resourceNameFilter": "a",
    "patternTypeFilter": 3,
    "principalFilter": "User:u",
    "hostFilter": "*",
    "operation": 3,
    "permissionType": 3,
}
GOOD: Final[Mapping[str, Mapping[str, Any]]] = {
    "CreateTopics": {
        "topics": [topic("new", [[1, 2]], configs=[CONFIG])],
        "timeoutMs": TIMEOUT_MS,
        "validateOnly": False,
    },
    "DeleteTopics": {
        "topics": [{"name": "a", "topicId": ZERO}],
        "topicNames": ["a"],
        "timeoutMs": TIMEOUT_MS,
    },
    "CreatePartitions": {
        "topics": [{"name": "b", "count": 2, "assignments": [{"brokerIds": [2]}]}],
        "timeoutMs": TIMEOUT_MS,
        "validateOnly": False,
    },
    "AlterConfigs": {
        "resources": [{"resourceType": 2, "resourceName": "a", "configs": [CONFIG]}],
        "validateOnly": False,
    },
    "IncrementalAlterConfigs": {
        "resources": [{"resourceType": 2, "resourceName": "a", "configs": [SET]}],
        "validateOnly": False,
    },
    "ElectLeaders": {
        "electionType": 0,
        "topicPartitions": [{"topic": "a", "partitions": [0]}],
        "timeoutMs": TIMEOUT_MS,
    },
    "AlterPartitionReassignments": {
        "timeoutMs": TIMEOUT_MS,
        "allowReplicationFactorChange": True,
        "topics": [{"name": "a", "partitions": [PARTITION]}],
    },
    "ListPartitionReassignments": {
        "timeoutMs": TIMEOUT_MS,
        "topics": [{"name": "a", "partitionIndexes": [0]}],
    },
    "AlterClientQuotas": {
        "entries": [
            {
                "entity": [{"entityType": "user", "entityName": "u"}],
                "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
            }
        ],
        "validateOnly": False,
    },
    "AlterUserScramCredentials": {
        "deletions": [{"name": "gone", "mechanism": 1}],
        "upsertions": [
            {
                "name": "u",
                "mechanism": 1,
                "iterations": 4096,
                "salt": SALTED,
                "saltedPassword": SALTED,
            }
        ],
    },
    "AlterPartition": {
        "brokerId": 1,
        "brokerEpoch": "$epoch:1",
        "topics": [
            {
                "topicId": "$topic:a",
                "partitions": [
                    {
                        "partitionIndex": 0,
                        "leaderEpoch": "$leader_epoch:a:0",
                        "newIsr": [1],
                        "newIsrWithEpochs": [IN_SYNC],
                        "leaderRecoveryState": 0,
                        "partitionEpoch": "$partition_epoch:a:0",
                    }
                ],
            }
        ],
    },
    "UpdateFeatures": {
        "timeoutMs": TIMEOUT_MS,
        "featureUpdates": [{"feature": "group.version", "maxVersionLevel": 1, "upgradeType": 1}],
        "validateOnly": True,
    },
    "DescribeCluster": {"includeClusterAuthorizedOperations": False, "endpointType": 2},
    "BrokerRegistration": registration(4, directories=2, rack="r"),
    "BrokerHeartbeat": heartbeat(1, wantFence=False, wantShutDown=False, offlineLogDirs=[]),
    "UnregisterBroker": {"brokerId": 3},
    "AllocateProducerIds": {"brokerId": 1, "brokerEpoch": "$epoch:1"},
    "AssignReplicasToDirs": {
        "brokerId": 1,
        "brokerEpoch": "$epoch:1",
        "directories": [
            {
                "id": directory(1, 1),
                "topics": [{"topicId": "$topic:a", "partitions": [{"partitionIndex": 0}]}],
            }
        ],
    },
    "CreateDelegationToken": {
        "ownerPrincipalType": "User",
        "ownerPrincipalName": "u",
        "renewers": [{"principalType": "User", "principalName": "v"}],
        "maxLifetimeMs": 60_000,
    },
    "RenewDelegationToken": {"hmac": SALTED, "renewPeriodMs": 60_000},
    "ExpireDelegationToken": {"hmac": SALTED, "expiryTimePeriodMs": 60_000},
    "CreateAcls": {
        "creations": [
            {
                "resourceType": 2,
                "resourceName": "a",
                "resourcePatternType": 3,
                "principal": "User:u",
                "host": "*",
                "operation": 3,
                "permissionType": 3,
            }
        ]
    },
    "DescribeAcls": ACL_FILTER,
    "DeleteAcls": {"filters": [ACL_FILTER]},
    "DescribeConfigs": {
        "resources": [
            {"resourceType": 4, "resourceName": "3000", "configurationKeys": ["node.id"]}
        ],
        "includeSynonyms": False,
        "includeDocumentation": False,
    },
    "ControllerRegistration": {
        "controllerId": 3001,
        "incarnationId": uuid_of(8),
        "zkMigrationReady": False,
        "listeners": [{"name": "CONTROLLER", "host": "c", "port": 9093, "securityProtocol": 0}],
        "features": features(),
    },
    "DescribeQuorum": {
        "topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]
    },
}
"""A request of each kind that is answered well after `CLUSTER`."""


def bad_input_scripts(api: str, version: int) -> Iterator[Script]:
    """Yield a script for each field of a request: all its limits, one after the other."""
    kind = request_class(API_KEYS[api])
    changed = (
        one for one in changed_bodies(kind, GOOD[api], version) if _is_comparable(api, one[1])
    )
    for index, (_, group) in enumerate(groupby(changed, key=_field)):
        steps = tuple(
            Step(api, version, body, is_placed=_is_placed(api, body)) for _, body in group
        )
        yield Script(f"{KIND}-{api}-v{version}", index, (*CLUSTER, *steps))


def _is_comparable(api: str, body: Mapping[str, Any]) -> bool:
    """Tell whether real Kafka answers such a request in one way, and survives it.

    Whether a millisecond is enough is a matter of chance; what comes of one partition that is
    reassigned twice is among the deviations.
    """
    if body.get("timeoutMs") == 1:
        return False
    if api != "AlterPartitionReassignments":
        return True
    named = [
        (topic["name"], partition["partitionIndex"])
        for topic in body["topics"] or ()
        for partition in topic["partitions"] or ()
    ]
    return len(set(named)) == len(named)


def _is_placed(api: str, body: Mapping[str, Any]) -> bool:
    """Tell whether the controller chooses replicas by chance."""
    if api not in {"CreateTopics", "CreatePartitions"}:
        return False
    return any(not topic.get("assignments") for topic in body["topics"] or ())


def _field(changed: tuple[Path, dict[str, Any]]) -> Path:
    return changed[0]
