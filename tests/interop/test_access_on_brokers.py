"""The answers of a broker to a client with few permissions: ours and a real one, field by field."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from tests.interop.differential.comparing import is_array, is_object
from tests.interop.differential.messages import message_of
from tests.interop.differential.security_scripts import ANYTHING
from tests.support.acls import WITH_AUTHORIZER, add_entries, entry
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.metadata.acl_codes import CLUSTER_NAME, AclOperation, AclResourceType
from kvorum.wire.apis import API_SPECS, request_class, response_class
from kvorum.wire.json_form import Json, to_json

pytestmark = pytest.mark.sample

SETTINGS: Final = {
    **WITH_AUTHORIZER,
    "super.users": "User:root",
    "delegation.token.secret.key": "secret",
}
KEYS: Final = {spec.name: spec.key for spec in API_SPECS.values()}
NAMES: Final = ("open", "closed", "nowhere", "closed-nowhere")
NAMED: Final = [{"name": name} for name in NAMES]
WITH_PARTITION: Final = [
    {"name": name, "partitions": [{"partitionIndex": 0, "committedOffset": 7}]} for name in NAMES
]
CONFIGS: Final = [
    {"resourceType": kind, "resourceName": name, "configurationKeys": ["retention.ms"]}
    for kind, name in ((2, "closed"), (4, ""), (4, "1"), (8, "1"), (16, "m"), (32, "closed"))
]
NAMED_PARTITIONS: Final = [{"name": name, "partitionIndexes": [0]} for name in NAMES]
FETCHED: Final = {"topic": "closed", "partitions": [{"partition": 0}]}
LOG_LEVEL: Final = {
    "resourceType": 8,
    "resourceName": "1",
    "configs": [{"name": "x", "configOperation": 0, "value": "INFO"}],
}
CLOSED: Final = {"groupId": "closed"}
OPEN: Final = {"groupId": "open"}
CASES: Final[tuple[tuple[str, int, dict[str, Any]], ...]] = (
    ("Metadata", 12, {"topics": None}),
    ("Metadata", 12, {"topics": NAMED, "includeTopicAuthorizedOperations": True}),
    ("Metadata", 4, {"topics": NAMED}),
    ("Metadata", 12, {"topics": NAMED, "allowAutoTopicCreation": True}),
    ("Metadata", 10, {"topics": [], "includeClusterAuthorizedOperations": True}),
    ("DescribeCluster", 2, {"includeClusterAuthorizedOperations": True}),
    ("DescribeTopicPartitions", 0, {"topics": NAMED, "responsePartitionLimit": 10}),
    ("DescribeTopicPartitions", 0, {"responsePartitionLimit": 10}),
    ("DescribeConfigs", 4, {"resources": CONFIGS}),
    ("DescribeAcls", 3, ANYTHING),
    ("DescribeClientQuotas", 1, {}),
    ("DescribeUserScramCredentials", 0, {"users": [{"name": "u"}]}),
    ("DescribeLogDirs", 4, {"topics": None}),
    ("ListConfigResources", 1, {}),
    ("ListGroups", 5, {}),
    ("ListTransactions", 1, {}),
    ("ListOffsets", 8, {"topics": [{"name": "closed", "partitions": [{"partitionIndex": 0}]}]}),
    ("Fetch", 12, {"maxBytes": 1, "sessionEpoch": -1, "topics": [FETCHED]}),
    ("FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["closed"]}),
    ("FindCoordinator", 3, {"key": "closed"}),
    ("FindCoordinator", 4, {"keyType": 1, "coordinatorKeys": []}),
    ("JoinGroup", 9, {**CLOSED, "sessionTimeoutMs": 1, "protocolType": "consumer"}),
    ("JoinGroup", 5, CLOSED),
    ("SyncGroup", 5, {**CLOSED, "protocolType": "consumer", "protocolName": "range"}),
    ("SyncGroup", 5, CLOSED),
    ("Heartbeat", 4, CLOSED),
    ("LeaveGroup", 5, {**CLOSED, "members": [{"memberId": "m"}]}),
    ("LeaveGroup", 2, {**CLOSED, "memberId": "m"}),
    ("OffsetCommit", 9, {**CLOSED, "topics": WITH_PARTITION}),
    ("OffsetCommit", 9, {**OPEN, "topics": WITH_PARTITION}),
    ("OffsetCommit", 9, {**OPEN, "memberId": "m", "topics": WITH_PARTITION}),
    (
        *("OffsetFetch", 9),
        {
            "groups": [
                {**group, "topics": topics}
                for group in (OPEN, CLOSED)
                for topics in (NAMED_PARTITIONS, None)
            ]
        },
    ),
    ("OffsetFetch", 5, {**OPEN, "topics": NAMED_PARTITIONS}),
    ("OffsetFetch", 1, {**CLOSED, "topics": [{"name": "open", "partitionIndexes": [0, 3]}]}),
    ("OffsetDelete", 0, {**CLOSED, "topics": [{"name": "open", "partitions": []}]}),
    (
        *("OffsetDelete", 0),
        {
            **OPEN,
            "topics": [
                {"name": name, "partitions": [{"partitionIndex": 0}, {"partitionIndex": 5}]}
                for name in NAMES
            ],
        },
    ),
    ("DescribeGroups", 6, {"groups": ["open", "closed"], "includeAuthorizedOperations": True}),
    ("DeleteGroups", 2, {"groupsNames": ["closed", "nobody's"]}),
    ("IncrementalAlterConfigs", 1, {"resources": [LOG_LEVEL]}),
    ("CreateDelegationToken", 3, {"maxLifetimeMs": -1}),
    ("CreateDelegationToken", 2, {"ownerPrincipalType": "User", "ownerPrincipalName": "bob"}),
    ("RenewDelegationToken", 2, {"hmac": "YWJj"}),
    ("ExpireDelegationToken", 2, {"hmac": "YWJj"}),
    ("DescribeDelegationToken", 3, {"owners": None}),
    ("DeleteTopics", 6, {"topics": NAMED[1:], "timeoutMs": 9_999}),
    ("UpdateFeatures", 1, {"timeoutMs": 9_999}),
    ("DescribeQuorum", 2, {}),
)
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
    add_entries(
        client,
        entry(AclResourceType.TOPIC, "closed", AclOperation.READ, principal="User:root"),
        entry(AclResourceType.TOPIC, "closed-nowhere", AclOperation.READ, principal="User:root"),
        entry(AclResourceType.GROUP, "closed", AclOperation.READ, principal="User:root"),
        entry(AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION),
    )
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


@pytest.mark.parametrize(("api", "version", "body"), CASES)
def test_a_client_sees_what_a_real_broker_says(
    clients: tuple[RawClient, RawClient], api: str, version: int, body: dict[str, Any]
) -> None:
    ours, theirs = (_neutral(_ask(client, api, version, body)) for client in clients)
    assert ours == theirs
