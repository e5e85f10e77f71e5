"""Fresh files of real brokers of two releases: dumped as by Kafka's tool, decoded, and sound."""

from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer
from tests.interop.broker_cluster import OlderBrokers, RunBrokers
from tests.interop.clients.confluent_records import end_transaction, send, transactional_producer
from tests.support.dump_log import decoder_of, dump, log_files
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import OLDEST_NODE, REFERENCE_RELEASE
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.waiting import PATIENCE_S

from kvorum.inspection.decoding.files import file_objects, files_below
from kvorum.inspection.log_check.check import check_paths
from kvorum.inspection.log_check.findings import Verdict

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
TOPIC: Final = "fresh"
RECORDS: Final = 60
ALONE: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "log.index.interval.bytes": "200",
}
RELEASES: Final = (REFERENCE_RELEASE, OLDEST_NODE)


@pytest.fixture(params=RELEASES)
def written(
    request: pytest.FixtureRequest, java: Java, kafka_jars: JarsOf, run_brokers: RunBrokers
) -> Path:
    """The folder of a real broker that carried records of all kinds, and was stopped."""
    older = None
    if request.param == OLDEST_NODE:
        older = OlderBrokers(Java(java.executable, kafka_jars(OLDEST_NODE)), "3.9")
    with run_brokers(brokers=1, settings=ALONE, older=older) as cluster:
        (broker,) = cluster.brokers.values()
        cluster.tool("kafka-topics", "--create", "--topic", TOPIC, "--partitions", "2")
        cluster.wait_for_partitions(TOPIC, leaders={broker.node_id}, isr={broker.node_id})
        for codec in CODECS:
            _produce(broker.address, codec)
        _produce_in_transactions(broker.address)
        _consume(broker.address)
        broker.stop()
        return broker.folder


def _produce(servers: str, codec: str) -> None:
    headers = [("codec", codec.encode()), ("empty", None)]
    records = [
        {
            "value": b"value %d " % number * 9,
            "key": b"%d" % number,
            "headers": headers if number % 9 == 0 else [],
        }
        for number in range(RECORDS)
    ]
    send(servers, TOPIC, records, compression_type=codec, enable_idempotence=True)


def _produce_in_transactions(servers: str) -> None:
    producer = transactional_producer(servers, "fresh-transactions")
    for number in range(4):
        producer.begin_transaction()
        producer.produce(TOPIC, b"in transaction %d" % number)
        # A transaction that is aborted before its records are sent has none in the log.
        producer.flush(PATIENCE_S)
        end_transaction(producer, is_committed=number % 2 == 0)


def _consume(servers: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "fresh-group", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    assert len(consumer.consume(RECORDS, timeout=PATIENCE_S)) == RECORDS
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.timeout(300)
def test_files_that_a_real_broker_just_wrote(
    written: Path, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    files = log_files(written)
    assert {file.suffix for file in files} >= {".log", ".index", ".timeindex", ".snapshot"}
    for file in files:
        options = ("--files", str(file), decoder_of(file))
        ours = dump(capsys, *options)
        theirs = kafka_tools.run("kafka-dump-log", *options)
        assert ours.stdout == theirs.stdout, file
        assert ours.exit_code == theirs.exit_code, file
    report = check_paths([written])
    assert report.verdict is Verdict.SOUND, report.findings
    objects = [found for file in files_below(written) for found in file_objects(file)]
    assert not [found for found in objects if found["type"] == "damage" or "problem" in found]
    kinds = {found.get("controlType") for found in objects}
    assert kinds >= {"COMMIT", "ABORT", "LEADER_CHANGE"}
