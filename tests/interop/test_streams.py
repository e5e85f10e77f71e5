"""Kafka Streams with `exactly_once_v2` on our brokers, its application killed again and again."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.confluent import make_topics, read_to_end, send
from tests.support.clients.driver import TopicWish
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import STREAMS
from tests.support.kafka.java import Java
from tests.support.node_process import NodeProcess
from tests.support.waiting import wait_for

from kvorum.testing import Cluster

SOURCE, COPIES, COUNTS = "source", "copies", "counts"
PARTITIONS: Final = 3
KINDS: Final = "abcdefg"
FIRST: Final = 300
MORE: Final = 100
KILLS: Final = 2
HEAP_MB: Final = 300
RUNS: Final = "RUNNING"
"""The state of an application that has its tasks."""
THREE_REPLICAS: Final = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=3, overrides=THREE_REPLICAS) as cluster:
        wishes = [TopicWish(name, PARTITIONS) for name in (SOURCE, COPIES, COUNTS)]
        make_topics(cluster.bootstrap_servers, *wishes)
        yield cluster


def values(servers: str, topic: str) -> list[tuple[str, str]]:
    """Return keys and values of the committed records of a topic."""
    places = [(topic, partition) for partition in range(PARTITIONS)]
    return [
        ((message.key() or b"").decode(), (message.value() or b"").decode())
        for message in read_to_end(servers, places, isolation="read_committed")
    ]


def write(servers: str, numbers: range) -> None:
    """Write records whose first letter is their kind."""
    records = [
        {
            "key": str(number),
            "value": f"{KINDS[number % len(KINDS)]}{number}",
            "partition": number % PARTITIONS,
        }
        for number in numbers
    ]
    send(servers, SOURCE, records)


@pytest.mark.slow
def test_an_application_that_is_killed_counts_and_copies_each_record_once(
    cluster: Cluster, java: Java, kafka_jars: JarsOf, tmp_path: Path
) -> None:
    streams = Java(java.executable, kafka_jars(STREAMS))
    servers = cluster.bootstrap_servers

    def started(number: int) -> NodeProcess:
        places = (SOURCE, COPIES, COUNTS, str(tmp_path / f"state-{number}"))
        command = streams.program("CountAndCopy", servers, "app", *places, heap_mb=HEAP_MB)
        log = tmp_path / f"application-{number}.log"
        return NodeProcess(command, log, ready=RUNS).start()

    def copied() -> list[str]:
        return [value for _, value in values(servers, COPIES)]

    written = FIRST
    write(servers, range(written))
    application = started(0)
    wait_for(copied, "the first records are copied")
    for kill in range(KILLS):
        application.kill()
        write(servers, range(written, written + MORE))
        written += MORE
        application = started(kill + 1)
    wait_for(lambda: len(copied()) >= written, "every record is copied", otherwise=copied)

    def counted() -> dict[str, int]:
        return {kind: int(count) for kind, count in values(servers, COUNTS)}

    wait_for(
        lambda: sum(counted().values()) >= written, "every record is counted", otherwise=counted
    )
    application.kill()
    expected = Counter(KINDS[number % len(KINDS)] for number in range(written))
    assert [one for one, count in Counter(copied()).items() if count > 1] == []
    assert counted() == dict(expected)
