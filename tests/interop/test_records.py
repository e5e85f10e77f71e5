"""Records by stock producers and consumers: written by each, read by each, in every codec."""

import asyncio
import importlib
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import make_topics, read_to_end, send
from tests.interop.clients.java_records import JavaClients, JavaMember
from tests.interop.metadata_shell import (
    SHELL_LEVEL,
    Shell,
    history,
    load,
    records_of,
    tree_text,
    without_provenance,
)
from tests.support.clients.driver import TopicWish
from tests.support.golden_data import snapshots
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import QUICK, STANDALONE, Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce, values
from tests.support.topics import WITH_AUTHORIZER
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.wire.records import read_batches

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
EVERYWHERE: Final = ("none", "gzip")
"""The codecs that kafka-python and aiokafka know without further libraries."""
COUNT: Final = 300
VALUES: Final = [f"value-{number}".encode() for number in range(COUNT)]


@pytest.fixture(scope="module")
def servers(kvorum_node: Node) -> str:
    return kvorum_node.address


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    name = "".join(one if one.isalnum() else "-" for one in request.node.name)
    make_topics(servers, TopicWish(name))
    return name


def by_confluent(servers: str, topic: str, codec: str) -> None:
    records = [{"value": value, "key": value[-2:]} for value in VALUES]
    send(servers, topic, records, compression_codec=codec, enable_idempotence=True)


def by_kafka_python(servers: str, topic: str, codec: str) -> None:
    library: Any = importlib.import_module("kafka")
    kind = None if codec == "none" else codec
    with closing(
        library.KafkaProducer(bootstrap_servers=servers, compression_type=kind, linger_ms=5)
    ) as producer:
        sent = [producer.send(topic, value, value[-2:]) for value in VALUES]
        assert [one.get(PATIENCE_S).offset for one in sent] == list(range(COUNT))


def by_aiokafka(servers: str, topic: str, codec: str) -> None:
    library: Any = importlib.import_module("aiokafka")

    async def send() -> None:
        producer = library.AIOKafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=True,
        )
        await producer.start()
        try:
            for value in VALUES:
                await producer.send(topic, value, value[-2:])
            await producer.flush()
        finally:
            await producer.stop()

    asyncio.run(send())


def read_by_confluent(servers: str, topic: str) -> list[bytes | None]:
    return [message.value() for message in read_to_end(servers, [(topic, 0)])]


def read_by_kafka_python(servers: str, topic: str) -> list[bytes]:
    library: Any = importlib.import_module("kafka")
    with closing(
        library.KafkaConsumer(bootstrap_servers=servers, consumer_timeout_ms=PATIENCE_S * 1000)
    ) as consumer:
        partition = library.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        return [next(consumer).value for _ in range(COUNT)]


PRODUCERS: Final = [
    *((by_confluent, codec) for codec in CODECS),
    *((by_kafka_python, codec) for codec in EVERYWHERE),
    *((by_aiokafka, codec) for codec in EVERYWHERE),
]


@pytest.mark.parametrize(("produce", "codec"), PRODUCERS)
def test_what_a_stock_producer_writes_stock_consumers_read(
    servers: str, topic: str, produce: Callable[[str, str, str], None], codec: str
) -> None:
    produce(servers, topic, codec)
    assert read_by_confluent(servers, topic) == VALUES
    if codec in EVERYWHERE:
        assert read_by_kafka_python(servers, topic) == VALUES


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_what_kafkas_own_producer_writes_every_consumer_reads(
    servers: str, topic: str, java: Java, codec: str
) -> None:
    clients = JavaClients(java)
    assert clients.produce(servers, topic, codec, VALUES) == list(range(COUNT))
    assert read_by_confluent(servers, topic) == VALUES
    with closing(JavaMember(clients, servers, topic, topic)) as member:
        wait_for(
            lambda: len(member.values) == COUNT,
            f"{COUNT} records are read",
            otherwise=lambda: member.values,
        )
        assert member.values == VALUES


@pytest.mark.parametrize("codec", CODECS)
def test_kcat_writes_and_reads(servers: str, topic: str, codec: str) -> None:
    kcat = shutil.which("kcat")
    if kcat is None:
        pytest.skip("kcat is not there")
    place = ("-b", servers, "-t", topic)
    lines = b"".join(value + b"\n" for value in VALUES)
    subprocess.run([kcat, "-P", "-z", codec, *place], input=lines, timeout=PATIENCE_S, check=True)
    read = subprocess.run(
        [kcat, "-C", "-e", "-q", "-o", "beginning", *place],
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert read.stdout == lines
    assert read_by_confluent(servers, topic) == VALUES


def test_kafkas_console_tools_write_and_read(
    servers: str, topic: str, kafka_tools: ToolRunner
) -> None:
    lines = [value.decode() for value in VALUES]
    connection = ("--bootstrap-server", servers, "--topic", topic)
    written = kafka_tools.run(
        "kafka-console-producer",
        *connection,
        "--compression-codec=lz4",
        stdin="".join(f"{line}\n" for line in lines),
    )
    assert (written.exit_code, written.stderr) == (0, "")
    place = ("--partition", "0", "--offset", "earliest", "--max-messages", str(COUNT))
    reading = ("kafka-console-consumer", *connection, *place, "--timeout-ms", "20000")
    assert kafka_tools.printed(*reading).splitlines() == lines
    assert kafka_tools.printed("kafka-get-offsets", *connection) == f"{topic}:0:{COUNT}\n"


SNAPSHOT_AFTER_BYTES = 500
NODE_SETTINGS = {
    **WITH_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": str(SNAPSHOT_AFTER_BYTES),
}
PLACES = {
    "topic": "--entity-type topics --entity-name written",
    "user": "--entity-type users --entity-name alice",
    "client": "--entity-type clients --entity-name 'loader (1)'",
    "access": "--allow-principal User:alice --topic written --operation",
    "brokers": "--entity-type brokers",
    "metrics": "--entity-type client-metrics",
    "group": "--entity-type groups --entity-name readers",
}
STEPS = (
    "kafka-topics --create --topic written --partitions 3",
    "kafka-topics --create --topic removed --config retention.ms=9",
    "kafka-topics --delete --topic removed",
    "kafka-configs {topic} --alter --add-config cleanup.policy=[compact,delete]",
    "kafka-configs {topic} --alter --add-config min.insync.replicas=2",
    "kafka-configs {topic} --alter --delete-config min.insync.replicas",
    "kafka-configs {brokers} --entity-default --alter --add-config log.retention.ms=100000",
    "kafka-configs {brokers} --entity-name 1 --alter --add-config message.max.bytes=2097152",
    "kafka-configs {metrics} --entity-name often --alter --add-config interval.ms=1000",
    "kafka-configs {group} --alter --add-config consumer.session.timeout.ms=50000",
    "kafka-configs {user} --alter --add-config SCRAM-SHA-256=[password=secret]",
    "kafka-configs {user} --alter --add-config SCRAM-SHA-512=[password=secret]",
    "kafka-configs {user} --alter --delete-config SCRAM-SHA-512",
    "kafka-configs {user} --alter --add-config producer_byte_rate=1024",
    "kafka-configs {user} {client} --alter --add-config request_percentage=0.5",
    "kafka-configs {user} --alter --delete-config producer_byte_rate",
    "kafka-acls --add {access} Read",
    "kafka-acls --add {access} Write",
    "kafka-acls --remove --force {access} Write",
    "kafka-features downgrade --feature share.version=0",
)
WRITTEN = {
    f"{name}Record"
    for name in (
        *("AccessControlEntry", "BeginTransaction", "BrokerRegistrationChange", "ClearElr"),
        *("ClientQuota", "Config", "EndTransaction", "FeatureLevel", "NoOp", "Partition"),
        *("RegisterBroker", "RegisterController", "RemoveAccessControlEntry", "RemoveTopic"),
        *("RemoveUserScramCredential", "Topic", "UserScramCredential"),
    )
}


@pytest.fixture(scope="module")
def metadata_directory(
    kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The metadata log of a node that was asked for all that."""
    node = Node(tmp_path_factory.mktemp("written"), NODE_SETTINGS)
    node.format((*STANDALONE, *SHELL_LEVEL))
    with node:
        for step in STEPS:
            tool, *arguments = shlex.split(step.format_map(PLACES))
            kafka_tools.printed(tool, "--bootstrap-server", node.address, *arguments)
        directory = node.metadata_log
        # It comes by the clock, which the tools leave no time for.
        node.process.wait_until(
            lambda: "NoOpRecord" in names_in(directory), "the log has a no-op record"
        )
        node.stop()
        yield directory


def names_in(directory: Path) -> set[str]:
    """Return the names of the records that a log holds."""
    batches = read_batches(history(directory), is_cut_allowed=True)
    records = (record for batch in batches if not batch.is_control for record in records_of(batch))
    return {message.NAME for message, _, _ in records}


def test_each_type_of_record_was_written(metadata_directory: Path) -> None:
    assert names_in(metadata_directory) >= WRITTEN


def test_the_real_shell_shows_log_and_snapshots(
    metadata_directory: Path, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    shell, log = Shell(kafka_tools, tmp_path), history(metadata_directory)
    assert "StandardAcl[" in shell.check(log)
    written = snapshots(metadata_directory)
    assert len(written) > 1
    for end, file in written.items():
        said = shell.check(file.read_bytes(), file)
        assert without_provenance(said) == without_provenance(tree_text(*load(log, end_offset=end)))


def test_the_real_tool_dumps_them(metadata_directory: Path, kafka_tools: ToolRunner) -> None:
    files = [*snapshots(metadata_directory).values(), *metadata_directory.glob("*.log")]
    for file in files:
        dumped = kafka_tools.dumped(file, "--cluster-metadata-decoder")
        assert "payload" in dumped
        assert "Error at" not in dumped


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
    files = ("--files", ",".join(map(str, sorted((tmp_path / "data").glob(f"{TOPIC}-0/*.log")))))
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
