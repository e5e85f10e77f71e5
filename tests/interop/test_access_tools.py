"""Kafka's tools for access and tokens, and confluent-kafka, see from ours what a real node tells.

Those who connect are anonymous. They may do everything as long as no entry is about it.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import TOPIC, ask_about_access
from tests.interop.differential.comparing import is_array, is_object
from tests.interop.differential.script import message_of
from tests.interop.differential.security_scripts import ANYTHING
from tests.interop.quorum_tools import (
    Both,
    results_of,
    without_features_served_in_part,
    without_own_names,
)
from tests.support.kafka.java import ToolRunner
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.topics import WITH_AUTHORIZER, add_entries, entry
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
PLACES: Final = {
    "alice": "--allow-principal User:alice",
    "anonymous": "--allow-principal User:ANONYMOUS",
    "bob": "--deny-principal User:bob",
    "level": "transaction.version=2",
    "prefixed": "--group g- --resource-pattern-type prefixed",
    "topic": "--entity-type topics --entity-name closed",
    "user": "--entity-type users --entity-name u",
}
STEPS: Final = (
    "kafka-acls {broker} --list",
    "kafka-topics {broker} --create --topic closed",
    "kafka-acls {broker} --add {alice} --operation Read --topic closed",
    "kafka-acls {broker} --add {alice} --operation Read --topic closed",
    "kafka-acls {controller} --add {alice} --allow-host 10.0.0.1 --operation All {prefixed}",
    "kafka-acls {broker} --add {bob} --operation Write --operation Describe --topic *",
    "kafka-acls {broker} --add {alice} --consumer --topic read --group g",
    "kafka-acls {broker} --add {alice} --producer --topic written --transactional-id tx",
    "kafka-acls {broker} --add {alice} --operation CreateTokens --user-principal User:carol",
    "kafka-acls {broker} --list",
    "kafka-acls {controller} --list",
    "kafka-acls {broker} --list --topic closed",
    "kafka-acls {broker} --list --topic closed --resource-pattern-type match",
    "kafka-acls {broker} --list --principal User:bob",
    "kafka-acls {broker} --remove --force {alice} --operation Read --topic read",
    "kafka-acls {controller} --remove --force --topic written",
    "kafka-acls {broker} --list",
    "kafka-topics {broker} --describe --topic closed",
    "kafka-topics {broker} --delete --topic closed",
    "kafka-topics {broker} --list",
    "kafka-configs {broker} --alter {topic} --add-config retention.ms=1",
    "{tokens} {broker} --create --max-life-time-period -1",
    "{tokens} {broker} --describe",
    "{tokens} {broker} --renew --hmac YWJj --renew-time-period -1",
    "{tokens} {broker} --expire --hmac YWJj --expiry-time-period -1",
    # From here on there is an entry about the cluster.
    "kafka-acls {broker} --add {anonymous} --operation ClusterAction --cluster",
    "kafka-acls {broker} --list",
    "kafka-acls {controller} --list",
    "kafka-acls {broker} --add {alice} --operation Read --topic t",
    "kafka-acls {controller} --remove --force --topic closed",
    "kafka-features {broker} describe",
    "kafka-features {broker} upgrade --feature {level}",
    "kafka-leader-election {broker} --election-type preferred --all-topic-partitions",
    "kafka-configs {broker} --describe --entity-type brokers --entity-name 1 --all",
    "kafka-configs {broker} --describe --entity-type users",
    "kafka-configs {broker} --alter {user} --add-config consumer_byte_rate=5",
    "kafka-metadata-quorum {broker} describe --status",
    "kafka-log-dirs {broker} --describe",
    "kafka-cluster unregister {broker} --id 1",
    "kafka-topics {broker} --create --topic closed-too",
)
REQUEST: Final = re.compile(r"Request .*? needs (\w+) permission")
EPOCH: Final = re.compile(r"(Epoch:\s+)\d+")


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    """A node of ours and a real one, with the same authorizer."""
    with both_nodes(SETTINGS) as (theirs, ours):
        yield ours, theirs


def looks(words: list[str]) -> bool:
    return "--list" in words or "--describe" in words


def neutral(text: str, node: Node) -> str:
    """Return a text without what differs between equal clusters; entries come in any order."""
    text = without_features_served_in_part(without_own_names(text, node))
    text = EPOCH.sub(r"\1<number>", text)
    text = REQUEST.sub(r"Request needs \1 permission", text)
    return "\n".join(sorted(line.rstrip() for line in text.splitlines()))


@pytest.fixture(scope="module")
def results(
    kafka_tools: ToolRunner,
    nodes: tuple[Node, Node],
    client_answers: tuple[list[str], list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Both]:
    """The output of the tools for ours and for the real node, by step."""
    assert client_answers[0], "they come first: the last of the steps closes the cluster"
    empty = tmp_path_factory.mktemp("tools") / "empty.properties"
    empty.write_text("")
    tokens = f"org.apache.kafka.tools.DelegationTokenCommand --command-config {empty}"
    return results_of(
        kafka_tools, nodes, STEPS, neutral=neutral, looks=looks, tokens=tokens, **PLACES
    )


@pytest.mark.parametrize("place", range(len(STEPS)), ids=STEPS)
def test_a_tool_prints_what_it_prints_about_a_real_node(results: list[Both], place: int) -> None:
    ours, theirs = results[place]
    assert ours == theirs


def test_some_of_it_is_refused(results: list[Both]) -> None:
    # Of equal steps it is the last.
    ours = {step: result for step, (result, _) in zip(STEPS, results, strict=True)}
    for step, words in (
        ("kafka-acls {broker} --list --topic closed", "User:alice, host=*, operation=READ"),
        ("kafka-acls {broker} --list", "needs DESCRIBE permission"),
        ("kafka-features {broker} upgrade --feature {level}", "needs ALTER permission"),
        ("{tokens} {broker} --create --max-life-time-period -1", "Token requests are not allowed"),
        ("kafka-topics {broker} --delete --topic closed", "closed"),
    ):
        assert words in ours[step].stdout + ours[step].stderr, step


@pytest.fixture(scope="module")
def client_answers(nodes: tuple[Node, Node]) -> tuple[list[str], list[str]]:
    """The answers of ours and of the real node to confluent-kafka, before the cluster is closed."""
    ours, theirs = (ask_about_access(node.address) for node in nodes)
    return ours, theirs


def test_confluents_client_sees_what_a_real_node_says(
    client_answers: tuple[list[str], list[str]],
) -> None:
    ours, theirs = client_answers
    assert ours == theirs
    assert any(answer.startswith(f"{TOPIC}: 29 ") for answer in ours)


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
    committed = _ask(client, "OffsetCommit", 9, {"groupId": group, "topics": WITH_PARTITION[:2]})
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
