"""Spark's Kafka connector writes to our broker, in batches and as a stream, and reads from it."""

from pathlib import Path
from typing import Final, cast

import pytest
from tests.interop.clients.confluent import make_topics
from tests.interop.clients.confluent_records import read_to_end
from tests.interop.clients.spark_programs import run_spark_program
from tests.support.clients.driver import TopicWish
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import SPARK_CONNECTOR
from tests.support.node import Node

PARTITIONS: Final = 3
COUNT: Final = 500
FIRST, SECOND = "from-spark", "copied-by-spark"


@pytest.mark.slow
def test_it_writes_and_copies_each_record_once(
    kvorum_node: Node, kafka_jars: JarsOf, tmp_path: Path
) -> None:
    servers = kvorum_node.address
    make_topics(servers, *(TopicWish(name, PARTITIONS) for name in (FIRST, SECOND)))
    places = (servers, kafka_jars(SPARK_CONNECTOR), tmp_path / "checkpoints")
    run_spark_program("spark_writer", *places, FIRST, SECOND, str(COUNT))
    written = sorted(record(number) for number in range(2 * COUNT))
    assert sorted(records_of(servers, FIRST)) == written
    assert sorted(records_of(servers, SECOND)) == written


Record = tuple[bytes, bytes, bytes]


def record(number: int) -> Record:
    """Return header, key and value of the record of a number; b"" for null."""
    key = b"" if number % 7 == 0 else b"key-%d" % number
    value = b"" if number % 11 == 0 else b"value-%d" % number
    return b"%d" % number, key, value


def records_of(servers: str, topic: str) -> list[Record]:
    found: list[Record] = []
    for message in read_to_end(servers, [(topic, partition) for partition in range(PARTITIONS)]):
        headers = cast("list[tuple[str, bytes]]", message.headers() or [])
        ((name, number),) = headers
        assert name == "number"
        found.append((number, message.key() or b"", message.value() or b""))
    return found
