"""Kafka's tools for access and tokens, and confluent-kafka, see from ours what a real node tells.

Those who connect are anonymous. They may do everything as long as no entry is about it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.confluent import TOPIC, ask_about_access
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.node import BothNodes, Node
from tests.support.waiting import are_alike, asked_until

pytestmark = pytest.mark.sample


SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
    "allow.everyone.if.no.acl.found": "true",
    "delegation.token.secret.key": "secret",
}
TOKENS: Final = "org.apache.kafka.tools.DelegationTokenCommand"
ALICE: Final = ("--allow-principal", "User:alice")
ANONYMOUS: Final = ("--allow-principal", "User:ANONYMOUS")
BROKER: Final = ("--bootstrap-server", "{broker}")
CONTROLLER: Final = ("--bootstrap-controller", "{controller}")
TOKEN_ARGUMENTS: Final = (*BROKER, "--command-config", "{empty}")
STEPS: Final[dict[str, tuple[str, ...]]] = {
    "nothing yet": ("kafka-acls", *BROKER, "--list"),
    "create a topic": ("kafka-topics", *BROKER, "--create", "--topic", "closed"),
    "allow": ("kafka-acls", *BROKER, "--add", *ALICE, "--operation", "Read", "--topic", "closed"),
    "allow again": (
        *("kafka-acls", *BROKER, "--add", *ALICE, "--operation", "Read", "--topic", "closed"),
    ),
    "allow a prefix, from one host, on a controller": (
        *("kafka-acls", *CONTROLLER, "--add", *ALICE, "--allow-host", "10.0.0.1"),
        *("--operation", "All", "--group", "g-", "--resource-pattern-type", "prefixed"),
    ),
    "deny": (
        *("kafka-acls", *BROKER, "--add", "--deny-principal", "User:bob"),
        *("--operation", "Write", "--operation", "Describe", "--topic", "*"),
    ),
    "allow what a consumer needs": (
        *("kafka-acls", *BROKER, "--add", *ALICE, "--consumer", "--topic", "read"),
        *("--group", "g"),
    ),
    "allow what a producer needs": (
        *("kafka-acls", *BROKER, "--add", *ALICE, "--producer", "--topic", "written"),
        *("--transactional-id", "tx"),
    ),
    "allow tokens": (
        *("kafka-acls", *BROKER, "--add", *ALICE, "--operation", "CreateTokens"),
        *("--user-principal", "User:carol"),
    ),
    "list": ("kafka-acls", *BROKER, "--list"),
    "list on a controller": ("kafka-acls", *CONTROLLER, "--list"),
    "list a topic": ("kafka-acls", *BROKER, "--list", "--topic", "closed"),
    "list what holds for a topic": (
        *("kafka-acls", *BROKER, "--list", "--topic", "closed"),
        *("--resource-pattern-type", "match"),
    ),
    "list somebody's": ("kafka-acls", *BROKER, "--list", "--principal", "User:bob"),
    "remove": (
        *("kafka-acls", *BROKER, "--remove", "--force", *ALICE, "--operation", "Read"),
        *("--topic", "read"),
    ),
    "remove all of a resource": (
        *("kafka-acls", *CONTROLLER, "--remove", "--force", "--topic", "written"),
    ),
    "list the rest": ("kafka-acls", *BROKER, "--list"),
    "describe a closed topic": ("kafka-topics", *BROKER, "--describe", "--topic", "closed"),
    "delete a closed topic": ("kafka-topics", *BROKER, "--delete", "--topic", "closed"),
    "list topics": ("kafka-topics", *BROKER, "--list"),
    "set a closed topic's key": (
        *("kafka-configs", *BROKER, "--alter", "--entity-type", "topics", "--entity-name"),
        *("closed", "--add-config", "retention.ms=1"),
    ),
    "make a token": (TOKENS, *TOKEN_ARGUMENTS, "--create", "--max-life-time-period", "-1"),
    "describe tokens": (TOKENS, *TOKEN_ARGUMENTS, "--describe"),
    "renew a token": (
        *(TOKENS, *TOKEN_ARGUMENTS, "--renew", "--hmac", "YWJj", "--renew-time-period", "-1"),
    ),
    "end a token": (
        *(TOKENS, *TOKEN_ARGUMENTS, "--expire", "--hmac", "YWJj", "--expiry-time-period", "-1"),
    ),
    "close the cluster": (
        *("kafka-acls", *BROKER, "--add", *ANONYMOUS, "--operation", "ClusterAction", "--cluster"),
    ),
    "list without a permission": ("kafka-acls", *BROKER, "--list"),
    "list on a controller without a permission": ("kafka-acls", *CONTROLLER, "--list"),
    "allow without a permission": (
        *("kafka-acls", *BROKER, "--add", *ALICE, "--operation", "Read", "--topic", "t"),
    ),
    "remove without a permission": (
        *("kafka-acls", *CONTROLLER, "--remove", "--force", "--topic", "closed"),
    ),
    "describe features": ("kafka-features", *BROKER, "describe"),
    "change a feature": (
        *("kafka-features", *BROKER, "upgrade", "--feature", "transaction.version=2"),
    ),
    "elect leaders": (
        *("kafka-leader-election", *BROKER, "--election-type", "preferred"),
        "--all-topic-partitions",
    ),
    "describe brokers": (
        *("kafka-configs", *BROKER, "--describe", "--entity-type", "brokers", "--entity-name", "1"),
        "--all",
    ),
    "describe quotas": ("kafka-configs", *BROKER, "--describe", "--entity-type", "users"),
    "set a quota": (
        *("kafka-configs", *BROKER, "--alter", "--entity-type", "users", "--entity-name", "u"),
        *("--add-config", "consumer_byte_rate=5"),
    ),
    "describe the quorum": ("kafka-metadata-quorum", *BROKER, "describe", "--status"),
    "describe directories": ("kafka-log-dirs", *BROKER, "--describe"),
    "unregister": ("kafka-cluster", "unregister", *BROKER, "--id", "1"),
    "create a topic without a permission": (
        *("kafka-topics", *BROKER, "--create", "--topic", "closed-too"),
    ),
}
STACK_FRAME: Final = re.compile(r"^\s+at .*\n|^\t\.\.\. \d+ more\n", re.MULTILINE)
TIME_IN_LOG: Final = re.compile(r"^\[\d{4}-[^\]]*\]", re.MULTILINE)
REQUEST: Final = re.compile(r"Request .*? needs (\w+) permission")
EPOCH: Final = re.compile(r"(Epoch:\s+)\d+")
CLIENT_NUMBER: Final = re.compile(r"(clientId=adminclient-)\d+")


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    """A node of ours and a real one, with the same authorizer."""
    with both_nodes(SETTINGS) as (theirs, ours):
        yield ours, theirs


def _run(tools: ToolRunner, node: Node, step: tuple[str, ...], empty: Path) -> ToolResult:
    addresses = {"broker": node.address, "controller": node.controller}
    tool, *arguments = (word.format(empty=empty, **addresses) for word in step)
    result = tools.run(tool, *arguments)
    return ToolResult(
        result.exit_code, _neutral(result.stdout, addresses), _neutral(result.stderr, addresses)
    )


def _neutral(text: str, addresses: dict[str, str]) -> str:
    """Return a text without what differs between equal clusters; entries come in any order."""
    for name, address in addresses.items():
        text = text.replace(address, f"<{name}>")
    text = STACK_FRAME.sub("", text)
    text = TIME_IN_LOG.sub("[time]", text)
    text = EPOCH.sub(r"\1<number>", text)
    text = CLIENT_NUMBER.sub(r"\1<number>", text)
    text = REQUEST.sub(r"Request needs \1 permission", text)
    return "\n".join(sorted(line.rstrip() for line in text.splitlines()))


@pytest.fixture(scope="module")
def results(
    kafka_tools: ToolRunner,
    nodes: tuple[Node, Node],
    client_answers: tuple[list[str], list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, tuple[ToolResult, ToolResult]]:
    """The output of the tools for ours and for the real node, by step.

    What only looks is asked again until both have published the last change.
    """
    assert client_answers[0], "they come first: the last of the steps closes the cluster"
    empty = tmp_path_factory.mktemp("tools") / "empty.properties"
    empty.write_text("")
    found: dict[str, tuple[ToolResult, ToolResult]] = {}
    for name, step in STEPS.items():

        def ask(step: tuple[str, ...] = step) -> tuple[ToolResult, ToolResult]:
            ours, theirs = (_run(kafka_tools, node, step, empty) for node in nodes)
            return ours, theirs

        only_looks = bool({"--list", "--describe"} & set(step))
        found[name] = asked_until(ask, are_alike, f"{name}: alike") if only_looks else ask()
    return found


@pytest.mark.parametrize("step", STEPS)
def test_a_tool_prints_what_it_prints_about_a_real_node(
    results: dict[str, tuple[ToolResult, ToolResult]], step: str
) -> None:
    ours, theirs = results[step]
    assert ours == theirs


def test_some_of_it_is_refused(results: dict[str, tuple[ToolResult, ToolResult]]) -> None:
    ours = {name: result[0] for name, result in results.items()}
    assert "User:alice, host=*, operation=READ" in ours["list"].stdout
    for name, words in (
        ("list without a permission", "needs DESCRIBE permission"),
        ("change a feature", "needs ALTER permission"),
        ("make a token", "Delegation Token requests are not allowed"),
        ("delete a closed topic", "closed"),
    ):
        assert words in ours[name].stdout + ours[name].stderr, name


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
