"""The source kvorum-log beside Spark's Kafka connector, on a topic of a running real broker.

Both run in one session with one core, in turns, the same query over key and value of all records.
Times are by the clock: what the broker does for the connector is not counted.
"""

import statistics
import time
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.report import Row
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node

from kvorum.spark import KvorumLogSource

RUNS: Final = 5
VALUE_BYTES: Final = 200
WAIT_S: Final = 120.0
CODECS: Final = ("none", "lz4")
QUERY: Final = ("count(*)", "sum(length(key))", "sum(length(value))", "max(offset)")


def rows(folder: Path, java: Java, session: SparkSession, records: int) -> list[Row]:
    """Return the rows of the report; the broker's directory is below `folder`."""
    session.dataSource.register(KvorumLogSource)
    with ToolRunner(java) as tools, Node(folder, java=java).format(tools=tools) as broker:
        return [_row(session, broker.address, broker.data, codec, records) for codec in CODECS]


def _row(session: SparkSession, servers: str, data: Path, codec: str, records: int) -> Row:
    topic = f"records-{codec}"
    _fill(servers, topic, codec, records)

    def ours() -> DataFrame:
        path = str(data / f"{topic}-0")
        columns = "key,value,offset"
        return session.read.format("kvorum-log").options(path=path, columns=columns).load()

    def theirs() -> DataFrame:
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic}
        return session.read.format("kafka").options(**options).load()

    samples: list[tuple[float, float]] = []
    # The first round warms up.
    for turn in range(RUNS + 1):
        seconds, found = _timed(ours())
        their_seconds, expected = _timed(theirs())
        if found != expected:
            raise RuntimeError(f"the sources differ: {found} and {expected}")
        if turn:
            samples.append((seconds, their_seconds))
    ours_rate, their_rate = (
        records / statistics.median(values) for values in zip(*samples, strict=True)
    )
    what = f"topic of {records:,} records, {codec}, through Spark, a core"
    peer = "Spark's Kafka connector, real broker"
    return Row(what, peer, ours_rate, their_rate, "r/s", is_rate=True)


def _timed(table: DataFrame) -> tuple[float, list[int]]:
    started = time.perf_counter()
    (found,) = table.selectExpr(*QUERY).collect()
    return time.perf_counter() - started, list(found)


def _fill(servers: str, topic: str, codec: str, records: int) -> None:
    # The stub of create_topics leaves out type parameters.
    admin: Any = AdminClient({"bootstrap.servers": servers})
    made: dict[str, Future[None]] = admin.create_topics([NewTopic(topic, 1, 1)])
    made[topic].result(WAIT_S)
    settings = {"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 20}
    producer = Producer(settings)
    random = Random(1)
    words = [random.randbytes(20).hex().encode() for _ in range(100)]
    for number in range(records):
        value = b" ".join(random.choices(words, k=VALUE_BYTES // 40))
        while True:
            try:
                producer.produce(topic, key=b"key-%d" % (number % 1000), value=value)
                break
            except BufferError:
                producer.poll(1.0)
    if producer.flush(WAIT_S):
        raise RuntimeError("the broker did not take all records in time")
