"""Records of a real broker's internal topics, read by Spark's Kafka connector and decoded by us."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.interop.clients.confluent import make_topics, read_to_end, transactional_producer
from tests.interop.clients.spark_programs import read_by_functions, run_spark_program, write
from tests.support.clients.driver import TopicWish
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import SPARK_CONNECTOR
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node
from tests.support.waiting import PATIENCE_S

OPEN_MS = 600_000
TOPICS = {"orders": 3, "payments": 1}
GROUPS = ("billing", "reports")
FEW_PARTITIONS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.mark.slow
def test_the_pages_examples_show_what_the_admin_client_says(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner, kafka_jars: JarsOf
) -> None:
    jars = kafka_jars(SPARK_CONNECTOR)
    with Node(tmp_path, FEW_PARTITIONS, java=java).format(tools=kafka_tools) as broker:
        servers = broker.address
        make_topics(servers, *(TopicWish(*one) for one in TOPICS.items()))
        for group in GROUPS:
            commit_offsets(servers, group)
        open_one = make_transactions(servers)
        found = decoded_by_spark(servers, jars)
        offsets = list(admins_offsets(servers))
        # The tool leaves a client behind, which would complain to all tests of the shared process.
        with ToolRunner(java) as tools:
            listed = tools.printed("kafka-transactions", "--bootstrap-server", servers, "list")
        open_one.abort_transaction(PATIENCE_S)
    examples = found["offsets"]
    # Each offset was committed twice.
    assert examples["on_columns"] == examples["strict"] == [2 * len(offsets), 0]
    rows: list[list[Any]] = examples["shown"]
    assert sorted(rows) == sorted(list(offset) for offset in offsets)
    assert len(offsets) == len(GROUPS) * sum(TOPICS.values())
    records = found["transactions"]
    assert {record["error"] for record in records} == {None}
    # The last record of each id is its state.
    states = {record["id"]: (record["producer_id"], record["status"]) for record in records}
    assert states == transactions_listed(listed)
    assert {record["status"] for record in records} >= {"CompleteCommit", "Ongoing", "Empty"}
    ongoing = [record for record in records if record["status"] == "Ongoing"]
    assert json.loads(ongoing[-1]["partitions"]) == [{"topic_name": "payments", "partitions": [0]}]


def commit_offsets(servers: str, group: str) -> None:
    """Commit offsets twice, so that the latest of each partition counts."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}
    )
    for turn in (1, 2):
        places = [
            TopicPartition(topic, partition, turn * 100 + partition + len(group))
            for topic, partitions in TOPICS.items()
            for partition in range(partitions)
        ]
        consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def make_transactions(servers: str) -> Producer:
    """Let one transactional id end a transaction, and another leave one open."""
    ended = transactional_producer(servers, "ended")
    ended.begin_transaction()
    ended.produce("orders", b"value", partition=1)
    ended.commit_transaction(PATIENCE_S)
    # The coordinator answers after the transaction before is complete.
    transactional_producer(servers, "ended")
    # It stays open while Spark starts and reads, however long a busy machine takes.
    unfinished = transactional_producer(servers, "unfinished", transaction_timeout_ms=OPEN_MS)
    unfinished.begin_transaction()
    unfinished.produce("payments", b"value", partition=0)
    assert unfinished.flush(PATIENCE_S) == 0
    return unfinished


def decoded_by_spark(servers: str, jars: Path) -> dict[str, Any]:
    printed = run_spark_program(read_by_functions, servers, jars)
    found: dict[str, Any] = json.loads(printed)
    return found


def admins_offsets(servers: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield group, topic, partition and offset of everything that is committed."""
    # The stub of list_consumer_group_offsets leaves out type parameters.
    admin: Any = AdminClient({"bootstrap.servers": servers})
    for group in GROUPS:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        for place in asked[group].result(PATIENCE_S).topic_partitions:
            yield group, place.topic, place.partition, place.offset


def transactions_listed(text: str) -> dict[str, tuple[int, str]]:
    """Return producer id and state by transactional id, as kafka-transactions prints them."""
    _, *lines = text.strip().splitlines()
    rows = [line.split() for line in lines]
    return {name: (int(producer_id), state) for name, _, producer_id, state in rows}


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
    run_spark_program(write, *places, FIRST, SECOND, str(COUNT))
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
