"""A data directory with records goes from ours to a real node and back, and outlives kills."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.confluent import ConfluentDriver
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.lone_node import KvorumNode, RealKafka
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce, values
from tests.support.waiting import wait_for

TOPIC: Final = "handed-over"
KILLS: Final = 5


def write(servers: str, values_sent: list[bytes]) -> None:
    """Write records one by one, behind the last one; each is acknowledged."""
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
    with ConfluentDriver(servers) as driver:
        wishes = [TopicWish(TOPIC, configs={"internal.segment.bytes": "1000"})]
        assert driver.create_topics(wishes)[TOPIC].code == 0


@pytest.mark.slow
def test_records_go_from_ours_to_a_real_node_and_back(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner
) -> None:
    with KvorumNode(tmp_path) as ours:
        create(ours.bootstrap_servers)
        write(ours.bootstrap_servers, numbered(0))
        assert ours.stop() == 0
    with RealKafka(java=java, tools=kafka_tools, folder=tmp_path, formatted=True) as theirs:
        assert read(theirs.bootstrap_servers) == numbered(0)
        write(theirs.bootstrap_servers, numbered(40))
    again = KvorumNode(tmp_path)
    again.start()
    try:
        assert read(again.bootstrap_servers) == numbered(0, 80)
        write(again.bootstrap_servers, numbered(80))
        assert read(again.bootstrap_servers) == numbered(0, 120)
    finally:
        assert again.stop() == 0
    dumped = kafka_tools.run(
        "kafka-dump-log",
        "--deep-iteration",
        "--verify-index-only",
        "--files",
        ",".join(str(path) for path in sorted((tmp_path / "data").glob(f"{TOPIC}-0/*.log"))),
    )
    assert (dumped.exit_code, "isvalid: false" in dumped.stdout) == (0, False)


@pytest.mark.slow
def test_what_was_acknowledged_is_there_after_every_kill(tmp_path: Path) -> None:
    node = KvorumNode(
        tmp_path, {"broker.session.timeout.ms": "300", "broker.heartbeat.interval.ms": "100"}
    )
    node.format()
    for number in range(KILLS):
        node.start()
        try:
            if number == 0:
                create(node.bootstrap_servers)
            assert read(node.bootstrap_servers) == numbered(0, 40 * number)
            write(node.bootstrap_servers, numbered(40 * number))
        finally:
            node.process.kill()
    node.start()
    assert read(node.bootstrap_servers) == numbered(0, 40 * KILLS)
    assert node.stop() == 0
