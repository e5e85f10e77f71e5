"""The answers of a broker to a client with few permissions: ours and a real one, field by field."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from tests.interop.differential.comparing import is_array, is_object
from tests.interop.differential.messages import message_of
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.wire.apis import API_SPECS, request_class, response_class
from kvorum.wire.json_form import Json, to_json

pytestmark = pytest.mark.sample


SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
    "allow.everyone.if.no.acl.found": "true",
    "delegation.token.secret.key": "secret",
}
POLL_INTERVAL_S: Final = 0.1
KEYS: Final = {spec.name: spec.key for spec in API_SPECS.values()}
ANYTHING: Final = {
    "resourceTypeFilter": 1,
    "resourceNameFilter": None,
    "patternTypeFilter": 1,
    "principalFilter": None,
    "hostFilter": None,
    "operation": 1,
    "permissionType": 1,
}
NAMES: Final = ("open", "closed", "nowhere", "closed-nowhere")
NAMED: Final = [{"name": name} for name in NAMES]
WITH_PARTITION: Final = [
    {"name": name, "partitions": [{"partitionIndex": 0, "committedOffset": 7}]} for name in NAMES
]
CONFIGS: Final = [
    {"resourceType": kind, "resourceName": name, "configurationKeys": ["retention.ms"]}
    for kind, name in ((2, "closed"), (4, ""), (4, "1"), (8, "1"), (16, "m"), (32, "closed"))
]
CASES: Final[dict[str, tuple[str, int, dict[str, Any]]]] = {
    "all topics": ("Metadata", 12, {"topics": None}),
    "topics": ("Metadata", 12, {"topics": NAMED, "includeTopicAuthorizedOperations": True}),
    "topics in an old version": ("Metadata", 4, {"topics": NAMED}),
    "topics to create": ("Metadata", 12, {"topics": NAMED, "allowAutoTopicCreation": True}),
    "operations on the cluster": (
        *("Metadata", 10),
        {"topics": [], "includeClusterAuthorizedOperations": True},
    ),
    "the cluster": ("DescribeCluster", 2, {"includeClusterAuthorizedOperations": True}),
    "partitions": (
        *("DescribeTopicPartitions", 0),
        {"topics": NAMED, "responsePartitionLimit": 10},
    ),
    "all partitions": ("DescribeTopicPartitions", 0, {"responsePartitionLimit": 10}),
    "configurations": ("DescribeConfigs", 4, {"resources": CONFIGS}),
    "entries": ("DescribeAcls", 3, ANYTHING),
    "quotas": ("DescribeClientQuotas", 1, {}),
    "credentials": ("DescribeUserScramCredentials", 0, {"users": [{"name": "u"}]}),
    "directories": ("DescribeLogDirs", 4, {"topics": None}),
    "resources": ("ListConfigResources", 1, {}),
    "groups": ("ListGroups", 5, {}),
    "transactions": ("ListTransactions", 1, {}),
    "offsets": (
        *("ListOffsets", 8),
        {"topics": [{"name": "closed", "partitions": [{"partitionIndex": 0}]}]},
    ),
    "fetching": (
        *("Fetch", 12),
        {
            "maxBytes": 1,
            "sessionEpoch": -1,
            "topics": [{"topic": "closed", "partitions": [{"partition": 0}]}],
        },
    ),
    "a group's coordinator": ("FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["closed"]}),
    "a group's coordinator in an old version": ("FindCoordinator", 3, {"key": "closed"}),
    "a transaction's coordinator": (*("FindCoordinator", 4), {"keyType": 1, "coordinatorKeys": []}),
    "joining": (
        *("JoinGroup", 9),
        {"groupId": "closed", "sessionTimeoutMs": 1, "protocolType": "consumer"},
    ),
    "joining in an old version": ("JoinGroup", 5, {"groupId": "closed"}),
    "syncing": (
        *("SyncGroup", 5),
        {"groupId": "closed", "protocolType": "consumer", "protocolName": "range"},
    ),
    "syncing without a protocol": ("SyncGroup", 5, {"groupId": "closed"}),
    "beating": ("Heartbeat", 4, {"groupId": "closed"}),
    "leaving": ("LeaveGroup", 5, {"groupId": "closed", "members": [{"memberId": "m"}]}),
    "leaving in an old version": ("LeaveGroup", 2, {"groupId": "closed", "memberId": "m"}),
    "committing for a closed group": (
        *("OffsetCommit", 9),
        {"groupId": "closed", "topics": WITH_PARTITION},
    ),
    "committing": ("OffsetCommit", 9, {"groupId": "open", "topics": WITH_PARTITION}),
    "committing as a member": (
        *("OffsetCommit", 9),
        {"groupId": "open", "memberId": "m", "topics": WITH_PARTITION},
    ),
    "offsets of groups": (
        *("OffsetFetch", 9),
        {
            "groups": [
                {"groupId": group, "topics": topics}
                for group in ("open", "closed")
                for topics in ([{"name": name, "partitionIndexes": [0]} for name in NAMES], None)
            ]
        },
    ),
    "offsets of an open group in an old version": (
        *("OffsetFetch", 5),
        {"groupId": "open", "topics": [{"name": name, "partitionIndexes": [0]} for name in NAMES]},
    ),
    "offsets of a closed group in an old version": (
        *("OffsetFetch", 1),
        {"groupId": "closed", "topics": [{"name": "open", "partitionIndexes": [0, 3]}]},
    ),
    "deleting offsets of a closed group": (
        *("OffsetDelete", 0),
        {"groupId": "closed", "topics": [{"name": "open", "partitions": []}]},
    ),
    "deleting offsets": (
        *("OffsetDelete", 0),
        {
            "groupId": "open",
            "topics": [
                {"name": name, "partitions": [{"partitionIndex": 0}, {"partitionIndex": 5}]}
                for name in NAMES
            ],
        },
    ),
    "members": (
        *("DescribeGroups", 6),
        {"groups": ["open", "closed"], "includeAuthorizedOperations": True},
    ),
    "deleting groups": ("DeleteGroups", 2, {"groupsNames": ["closed", "nobody's"]}),
    "log levels": (
        *("IncrementalAlterConfigs", 1),
        {
            "resources": [
                {
                    "resourceType": 8,
                    "resourceName": "1",
                    "configs": [{"name": "x", "configOperation": 0, "value": "INFO"}],
                }
            ]
        },
    ),
    "a token": ("CreateDelegationToken", 3, {"maxLifetimeMs": -1}),
    "somebody's token": (
        *("CreateDelegationToken", 2),
        {"ownerPrincipalType": "User", "ownerPrincipalName": "bob"},
    ),
    "renewing": ("RenewDelegationToken", 2, {"hmac": "YWJj"}),
    "ending": ("ExpireDelegationToken", 2, {"hmac": "YWJj"}),
    "tokens": ("DescribeDelegationToken", 3, {"owners": None}),
    "deleting": ("DeleteTopics", 6, {"topics": NAMED[1:], "timeoutMs": 9_999}),
    "features": ("UpdateFeatures", 1, {"timeoutMs": 9_999}),
    "the quorum": ("DescribeQuorum", 2, {}),
}
REQUEST: Final = re.compile(r"Request .*? needs (\w+) permission")
UUID: Final = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
UNORDERED: Final = frozenset({"topics", "responses"})


@pytest.fixture(scope="module")
def clients(both_nodes: BothNodes) -> Iterator[tuple[RawClient, RawClient]]:
    """Connections to a broker of ours and to a real one, once both have been closed alike."""
    with (
        both_nodes(SETTINGS) as (theirs, ours),
        RawClient(ours.address) as to_ours,
        RawClient(theirs.address) as to_theirs,
    ):
        for client in (to_ours, to_theirs):
            _close(client)
        yield to_ours, to_theirs


def _ask(client: RawClient, api: str, version: int, body: dict[str, Any]) -> Json:
    key = KEYS[api]
    request = message_of(request_class(key), body, version)
    return to_json(client.ask(request, response_class(key), version), version)


def _close(client: RawClient) -> None:
    """Leave a topic and a group to another user, and to clients nothing but CLUSTER_ACTION."""
    made = {"numPartitions": 1, "replicationFactor": 1}
    topics = [{"name": name, **made} for name in ("open", "closed")]
    created = _ask(client, "CreateTopics", 7, {"topics": topics, "timeoutMs": 9_999})
    assert [topic["errorCode"] for topic in created["topics"]] == [0, 0]
    _commit(client)
    wanted = [
        (AclResourceType.TOPIC, "closed", "User:root", AclOperation.READ),
        (AclResourceType.TOPIC, "closed-nowhere", "User:root", AclOperation.READ),
        (AclResourceType.GROUP, "closed", "User:root", AclOperation.READ),
        (AclResourceType.CLUSTER, CLUSTER_NAME, "User:ANONYMOUS", AclOperation.CLUSTER_ACTION),
    ]
    creations = [
        {
            "resourceType": kind.value,
            "resourceName": name,
            "resourcePatternType": PatternType.LITERAL.value,
            "principal": principal,
            "host": "*",
            "operation": operation.value,
            "permissionType": PermissionType.ALLOW.value,
        }
        for kind, name, principal, operation in wanted
    ]
    answer = _ask(client, "CreateAcls", 3, {"creations": creations})
    assert [result["errorCode"] for result in answer["results"]] == [0] * len(creations)
    wait_for(
        lambda: bool(_ask(client, "DescribeAcls", 3, ANYTHING)["errorCode"]),
        "the broker goes by the entries",
    )


def _commit(client: RawClient) -> None:
    """Have offsets of both topics in both groups, as soon as there is a coordinator."""
    for group in ("open", "closed"):
        wait_for(partial(_is_committed, client, group), f"group {group} has offsets")


def _is_committed(client: RawClient, group: str) -> bool:
    found = _ask(client, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": [group]})
    body = {"groupId": group, "topics": WITH_PARTITION[:2]}
    committed = _ask(client, "OffsetCommit", 9, body)
    codes = [one["errorCode"] for one in found["coordinators"]]
    codes += [one["partitions"][0]["errorCode"] for one in committed["topics"]]
    return not any(codes)


def _neutral(value: Json, name: str = "") -> Json:
    """Return an answer without what two equal clusters have of their own."""
    if is_object(value):
        return {name: _neutral(each, name) for name, each in value.items()}
    if is_array(value):
        made = [_neutral(each) for each in value]
        return sorted(made, key=json.dumps) if name in UNORDERED else made
    if isinstance(value, str):
        return UUID.sub("<uuid>", REQUEST.sub(r"Request needs \1 permission", value))
    return "<port>" if name == "port" and value > 0 else value


@pytest.mark.parametrize("case", CASES)
def test_a_client_sees_what_a_real_broker_says(
    clients: tuple[RawClient, RawClient], case: str
) -> None:
    api, version, body = CASES[case]
    ours, theirs = (_neutral(_ask(client, api, version, body)) for client in clients)
    assert ours == theirs
