"""Records by stock producers and consumers: written by each, read by each, in every codec."""

import asyncio
import importlib
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.interop.clients.confluent_records import read_to_end, send
from tests.interop.clients.java_records import JavaClients, JavaMember
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import Node
from tests.support.waiting import PATIENCE_S, wait_for

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
EVERYWHERE: Final = ("none", "gzip")
"""The codecs that kafka-python and aiokafka know without further libraries."""
COUNT: Final = 300
VALUES: Final = [f"value-{number}".encode() for number in range(COUNT)]


@pytest.fixture(scope="module")
def servers(kvorum_node: Node) -> str:
    """The bootstrap servers of a node."""
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
