"""Spark's Kafka connector writes to our broker, in batches and as a stream, and reads from it."""

from pathlib import Path
from typing import Final, cast

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from tests.interop.clients.confluent import ConfluentDriver
from tests.interop.clients.spark_programs import run_spark_program
from tests.support.clients.driver import TopicWish
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import SPARK_CONNECTOR
from tests.support.node import Node
from tests.support.waiting import PATIENCE_S

PARTITIONS: Final = 3
COUNT: Final = 500
FIRST, SECOND = "from-spark", "copied-by-spark"


@pytest.mark.slow
def test_it_writes_and_copies_each_record_once(
    kvorum_node: Node, kafka_jars: JarsOf, tmp_path: Path
) -> None:
    servers = kvorum_node.address
    with ConfluentDriver(servers) as driver:
        made = driver.create_topics([TopicWish(name, PARTITIONS) for name in (FIRST, SECOND)])
        assert {outcome.code for outcome in made.values()} == {0}
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
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "readers",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in range(PARTITIONS)])
    found: list[Record] = []
    ended = 0
    while ended < PARTITIONS:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            ended += 1
            continue
        headers = cast("list[tuple[str, bytes]]", message.headers() or [])
        ((name, number),) = headers
        assert name == "number"
        found.append((number, message.key() or b"", message.value() or b""))
    consumer.close()
    return found
