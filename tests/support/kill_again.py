"""Kill a combined node again and again while topics are created."""

import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.raw_client import RawClient

from kvorum.node.embedded.node import PROPERTIES_FILE
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

SESSION_TIMEOUT_MS = 200
"""A killed broker may come back when its session is over: soon."""


ANSWERS_MAX = 20


SEED = 20_000


class Node:
    """One ``kvorum dev`` that can be killed."""

    def __init__(self, folder: Path) -> None:
        size = ["--controllers", "1", "--brokers", "1"]
        command = [sys.executable, "-m", "kvorum.cli", "dev", "--json", *size]
        command += ["--data", str(folder)]
        command += [] if (folder / PROPERTIES_FILE).exists() else ["--port", "0"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1]
        self.address: str = json.loads(line)["bootstrap_servers"]

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> int:
        """End it as an operator would."""
        self._process.terminate()
        self._process.communicate()
        return self._process.returncode


def names(round_number: int) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"round-{round_number}-topic-{number}"


def stream(node: Node, round_number: int, *, answers: int) -> tuple[set[str], set[str]]:
    """Create topics and kill the node; return those acknowledged, and those asked for."""
    acknowledged: set[str] = set()
    asked: set[str] = set()
    with RawClient(node.address) as client, contextlib.suppress(AssertionError, OSError):
        for name in names(round_number):
            if len(acknowledged) == answers:
                # The next request is under way when the node dies.
                client.send(request_for(name), 7)
                asked.add(name)
                node.kill()
                break
            asked.add(name)
            response = client.ask(request_for(name), CreateTopicsResponse, 7)
            if response.topics[0].error_code == ErrorCode.NONE:
                acknowledged.add(name)
    return acknowledged, asked


def request_for(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=5000)


def present(node: Node) -> list[str | None]:
    with RawClient(node.address) as client:
        return [
            topic.name for topic in client.ask(MetadataRequest(None), MetadataResponse, 12).topics
        ]


def kill_again_and_again(folder: Path, rounds: int) -> tuple[set[str], set[str]]:
    """Return the topics that were acknowledged, and all that were asked for; check each round."""
    dice = random.Random(SEED)
    acknowledged: set[str] = set()
    asked: set[str] = set()
    assert Node(folder).stop() == 0
    with (folder / PROPERTIES_FILE).open("a") as properties:
        properties.write(f"broker.session.timeout.ms={SESSION_TIMEOUT_MS}\n")
        properties.write(f"broker.heartbeat.interval.ms={SESSION_TIMEOUT_MS // 4}\n")
    for number in range(rounds):
        node = Node(folder)
        found = present(node)
        assert acknowledged <= set(found), f"lost before round {number}"
        assert set(found) <= asked
        assert len(found) == len(set(found))
        more, wanted = stream(node, number, answers=dice.randint(0, ANSWERS_MAX))
        acknowledged |= more
        asked |= wanted
    return acknowledged, asked
