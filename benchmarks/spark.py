"""Our work with Spark beside what there is: a bare session, kafka-dump-log, the Kafka connector.

The start is the time of `kvorum pipeline` for a small log, beside a session of Spark that counts
one row. Both are processes of their own at default settings, by the clock, in turns. Ours reads a
log of a few hundred records and writes all tables.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks import spark_metadata
from benchmarks.fleet.cluster_log import write_cluster
from benchmarks.report import Row
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, SPARK_CONNECTOR, find_java
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node

from kvorum.spark import KvorumLogSource
from kvorum.spark.session import build_session

LOG_RUNS: Final = 5
VALUE_BYTES: Final = 200
WAIT_S: Final = 120.0
CODECS: Final = ("none", "lz4")
QUERY: Final = ("count(*)", "sum(length(key))", "sum(length(value))", "max(offset)")


def log_rows(folder: Path, java: Java, session: SparkSession, records: int) -> list[Row]:
    """Return the rows of the report; the broker's directory is below `folder`.

    Both run in one session with one core, in turns, the same query over key and value of all
    records. Times are by the clock: what the broker does for the connector is not counted.
    """
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
    for turn in range(LOG_RUNS + 1):
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


RUNS: Final = 7
RECORDS: Final = 300
BARE_SESSION: Final = """
from pyspark.sql import SparkSession
session = SparkSession.builder.getOrCreate()
assert session.range(1).count() == 1
session.stop()
"""


def rows(*, metadata_records: int, pushdown_records: int, log_records: int) -> list[Row]:
    """Return the rows of the report: a start, metadata logs and a topic of so many records."""
    with tempfile.TemporaryDirectory() as folder:
        # Before the environment is that of the session with the connector.
        start = start_rows(Path(folder))
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    jars = ",".join(str(jar) for jar in sorted((JARS_ROOT / SPARK_CONNECTOR).glob("*.jar")))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
    session = build_session(master="local[1]", driver_memory="2g")
    try:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            return [
                *start,
                *spark_metadata.rows(
                    root / "metadata",
                    java,
                    session,
                    records=metadata_records,
                    pushdown_records=pushdown_records,
                ),
                *log_rows(root / "broker", java, session, log_records),
            ]
    finally:
        session.stop()


def start_rows(folder: Path) -> list[Row]:
    log = folder / "cluster"
    write_cluster(log, 1, records=RECORDS, partitions=30)
    pipeline = [sys.executable, "-m", "kvorum.cli", "pipeline", "--input", str(log)]
    samples: list[tuple[float, float]] = []
    for number in range(RUNS):
        ours = _seconds([*pipeline, "--output", str(folder / f"tables-{number}")])
        theirs = _seconds([sys.executable, "-c", BARE_SESSION])
        print(f"kvorum pipeline {ours:.2f} s, a bare session {theirs:.2f} s", file=sys.stderr)
        samples.append((ours, theirs))
    ours, theirs = (statistics.median(values) for values in zip(*samples, strict=True))
    what = f"kvorum pipeline, log of {RECORDS} records"
    return [Row(what, "a session of Spark that counts one row", ours, theirs, "s")]


def _seconds(command: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - started
