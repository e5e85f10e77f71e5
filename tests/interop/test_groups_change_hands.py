"""A data directory with groups goes from a real node to ours and back; offsets outlive kills."""

import importlib
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.interop.clients.confluent_records import send
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import QUICK, Node
from tests.support.waiting import PATIENCE_S

TOPIC: Final = "handed-over"
PARTITIONS: Final = 4
GROUPS: Final = ("one", "two", "grp-é")
SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0"}
BATCH: Final = 10
KILLS: Final = 3


def read(servers: str, group: str) -> list[int]:
    """Return what is new for a group, and commit each record that was read."""
    library: Any = importlib.import_module("confluent_kafka")
    consumer = library.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    values: list[int] = []
    with closing(consumer):
        consumer.subscribe([TOPIC])
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the group has no coordinator"
            if message.error() is not None:
                ended.add(message.partition())
                continue
            values.append(int(message.value()))
            consumer.commit(message, asynchronous=False)
    return sorted(values)


def use(servers: str, first: int) -> None:
    """Write records; every group reads those, and no other."""
    numbers = range(first, first + BATCH)
    placed = [{"value": b"%d" % number, "partition": number % PARTITIONS} for number in numbers]
    send(servers, TOPIC, placed)
    for group in GROUPS:
        assert read(servers, group) == list(numbers), group


@pytest.mark.slow
def test_groups_go_from_a_real_node_to_ours_and_back(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner
) -> None:
    with Node(tmp_path, SETTINGS, java=java).format(tools=kafka_tools) as real:
        make_topics(real.address, TopicWish(TOPIC, partitions=PARTITIONS))
        use(real.address, 0)
    with Node(tmp_path, SETTINGS) as ours:
        assert read(ours.address, "one") == []
        use(ours.address, BATCH)
    with Node(tmp_path, SETTINGS, java=java) as again:
        assert read(again.address, "two") == []
        use(again.address, 2 * BATCH)
        asked = ("--bootstrap-server", again.address, "--describe", "--group", "grp-é")
        described = kafka_tools.printed("kafka-consumer-groups", *asked)
        assert described.count(TOPIC) == PARTITIONS
    (log,) = (tmp_path / "data").glob("__consumer_offsets-47/*.log")
    assert "grp-é" in kafka_tools.dumped(log, "--offsets-decoder")


@pytest.mark.slow
def test_what_a_group_has_committed_outlives_every_kill(tmp_path: Path) -> None:
    node = Node(tmp_path, {**SETTINGS, **QUICK}).format()
    for number in range(KILLS):
        with node.process:
            if number == 0:
                make_topics(node.address, TopicWish(TOPIC, partitions=PARTITIONS))
            use(node.address, number * BATCH)
    with node:
        assert [read(node.address, group) for group in GROUPS] == [[], [], []]
