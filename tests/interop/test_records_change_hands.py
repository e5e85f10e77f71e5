"""A data directory with records goes from ours to a real node and back, and outlives kills."""

from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import QUICK, Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce, values
from tests.support.waiting import wait_for

TOPIC: Final = "handed-over"
KILLS: Final = 5


def write(servers: str, values_sent: list[bytes]) -> None:
    """Write records one by one, after the last one; each is acknowledged."""
    with RawClient(servers) as client:
        wait_for(lambda: fetch(client, TOPIC, 0).error_code == 0, f"{TOPIC} is led")
        for value in values_sent:
            assert produce(client, TOPIC, batch(value)).error_code == 0


def read(servers: str) -> list[bytes | None]:
    with RawClient(servers) as client:
        wait_for(lambda: fetch(client, TOPIC, 0).error_code == 0, f"{TOPIC} is led")
        found: list[bytes | None] = []
        while got := values(fetch(client, TOPIC, len(found))):
            found += got
        return found


def numbered(first: int, count: int = 40) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def create(servers: str) -> None:
    make_topics(servers, TopicWish(TOPIC, configs={"internal.segment.bytes": "1000"}))


@pytest.mark.slow
def test_records_go_from_ours_to_a_real_node_and_back(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner
) -> None:
    with Node(tmp_path).format() as ours:
        create(ours.address)
        write(ours.address, numbered(0))
    with Node(tmp_path, java=java) as theirs:
        assert read(theirs.address) == numbered(0)
        write(theirs.address, numbered(40))
    with Node(tmp_path) as again:
        assert read(again.address) == numbered(0, 80)
        write(again.address, numbered(80))
        assert read(again.address) == numbered(0, 120)
    segments = sorted((tmp_path / "data").glob(f"{TOPIC}-0/*.log"))
    files = ("--files", ",".join(map(str, segments)))
    checked = ("kafka-dump-log", "--deep-iteration", "--verify-index-only", *files)
    assert "isvalid: false" not in kafka_tools.printed(*checked)


@pytest.mark.slow
def test_what_was_acknowledged_is_there_after_every_kill(tmp_path: Path) -> None:
    node = Node(tmp_path, QUICK).format()
    for number in range(KILLS):
        with node.process:
            if number == 0:
                create(node.address)
            assert read(node.address) == numbered(0, 40 * number)
            write(node.address, numbered(40 * number))
    with node:
        assert read(node.address) == numbered(0, 40 * KILLS)
