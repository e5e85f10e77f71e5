"""Kafka's tools for access and tokens, and confluent-kafka, see from ours what a real node tells.

Those who connect are anonymous. They may do everything as long as no entry is about it.
"""

import re
from collections.abc import Iterator
from typing import Final

import pytest
from tests.interop.clients.confluent import TOPIC, ask_about_access
from tests.interop.tool_steps import Both, results_of, without_own_names
from tests.support.acls import WITH_AUTHORIZER
from tests.support.kafka.tools import ToolRunner
from tests.support.node import BothNodes, Node

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
    text = EPOCH.sub(r"\1<number>", without_own_names(text, node))
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
