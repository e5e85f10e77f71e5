"""A ``kvorum dev`` that is killed again and again while topics are created."""

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

from tests.support.node_process import KVORUM, NodeProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_request, read_topics

from kvorum.node.embedded.node import PROPERTIES_FILE
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsResponse

SESSION_TIMEOUT_MS = 200
"""A killed broker may come back when its session is over: soon."""
ANSWERS_MAX = 20
SEED = 20_000
SERVERS = "bootstrap_servers"
"""What a ``kvorum dev --json`` says of itself once it serves."""


def dev_node(folder: Path) -> NodeProcess:
    """Return a ``kvorum dev`` of one node, not started."""
    command = [*KVORUM, "dev", "--json", "--controllers", "1", "--brokers", "1"]
    command += ["--data", str(folder)]
    command += [] if (folder / PROPERTIES_FILE).exists() else ["--port", "0"]
    return NodeProcess(command, ready=SERVERS)


def address_of(node: NodeProcess) -> str:
    """Return where a running node serves clients."""
    facts = json.loads(node.wait_for_line(SERVERS))
    address: str = facts[SERVERS]
    return address


def names(round_number: int) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"round-{round_number}-topic-{number}"


def stream(node: NodeProcess, round_number: int, *, answers: int) -> tuple[set[str], set[str]]:
    """Create topics and kill the node; return those acknowledged, and those asked for."""
    acknowledged: set[str] = set()
    asked: set[str] = set()
    with RawClient(address_of(node)) as client, contextlib.suppress(AssertionError, OSError):
        for name in names(round_number):
            if len(acknowledged) == answers:
                # The next request is under way when the node dies.
                client.send(create_request([name]), 7)
                asked.add(name)
                node.kill()
                break
            asked.add(name)
            response = client.ask(create_request([name]), CreateTopicsResponse, 7)
            if response.topics[0].error_code == ErrorCode.NONE:
                acknowledged.add(name)
    return acknowledged, asked


def kill_again_and_again(folder: Path, rounds: int) -> tuple[set[str], set[str]]:
    """Return the topics that were acknowledged, and all that were asked for; check each round."""
    dice = random.Random(SEED)
    acknowledged: set[str] = set()
    asked: set[str] = set()
    with dev_node(folder) as first:
        assert first.terminate().exit_code == 0
    with (folder / PROPERTIES_FILE).open("a") as properties:
        properties.write(f"broker.session.timeout.ms={SESSION_TIMEOUT_MS}\n")
        properties.write(f"broker.heartbeat.interval.ms={SESSION_TIMEOUT_MS // 4}\n")
    for number in range(rounds):
        with dev_node(folder) as node:
            found = read_topics(address_of(node)).keys()
            assert acknowledged <= found, f"lost before round {number}"
            assert found <= asked
            more, wanted = stream(node, number, answers=dice.randint(0, ANSWERS_MAX))
        acknowledged |= more
        asked |= wanted
    return acknowledged, asked
