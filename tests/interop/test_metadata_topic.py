"""The metadata topic of our broker, read by Kafka's tools and by other clients."""

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.interop.clients.confluent import make_topics
from tests.interop.clients.spark_programs import read_metadata, run_spark_program
from tests.interop.trimmed_metadata_log import SETTINGS, move_start
from tests.support.clients.driver import TopicWish
from tests.support.clients.metadata_readers import (
    EARLIEST,
    LATEST,
    READERS,
    ConfluentReader,
    KafkaPythonReader,
    Read,
    read_all,
    records_on_disk,
)
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import SPARK_CONNECTOR
from tests.support.kafka.java import ToolRunner
from tests.support.metadata_consumer import fetch, fetch_request, list_offsets
from tests.support.node import Node
from tests.support.page_blocks import page_block, typed
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.testing import AsyncCluster
from kvorum.wire.error_codes import ErrorCode

READABLE = {
    "kvorum.metadata.topic.readable": "true",
    # The compared files do not grow meanwhile.
    "metadata.max.idle.interval.ms": "0",
}
PARTITION = ("--topic", CLUSTER_METADATA_TOPIC, "--partition", "0")
# It writes each byte so that it can be read back.
BYTES = "org.apache.kafka.common.serialization.BytesDeserializer"
SHOWN = (
    *("--formatter-property", "print.offset=true"),
    *("--formatter-property", "print.timestamp=true"),
    *("--formatter-property", f"value.deserializer={BYTES}"),
)
_LINE = re.compile(r"^CreateTime:(\d+)\tOffset:(\d+)\t(.*)$")
_ESCAPED = re.compile(r"\\x([0-9A-F]{2})")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose metadata may be read, with some topics."""
    with Node(tmp_path_factory.mktemp("readable"), READABLE).format() as node:
        make_topics(node.address, *(TopicWish(f"topic-{number}", 3) for number in range(5)))
        yield node


@pytest.fixture(scope="module")
def on_disk(node: Node) -> list[Read]:
    """The records of its log, which does not grow any more."""
    return records_on_disk(node.metadata_log)


def bytes_of(text: str) -> bytes:
    """Return the bytes that the tool's deserializer wrote down."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).encode("latin-1")


def consume(tools: ToolRunner, node: Node, count: int, *arguments: str) -> list[Read]:
    """Return what kafka-console-consumer prints, up to so many records."""
    done = tools.run(
        "kafka-console-consumer",
        "--bootstrap-server",
        node.address,
        *PARTITION,
        *SHOWN,
        *arguments,
        "--max-messages",
        str(count),
        "--timeout-ms",
        "30000",
    )
    assert done.exit_code == 0, done.stdout + done.stderr
    assert f"Processed a total of {count} messages" in done.stderr
    lines = [_LINE.match(line) for line in done.stdout.splitlines()]
    return [Read(int(one[2]), int(one[1]), bytes_of(one[3])) for one in lines if one is not None]


def test_kafka_console_consumer_prints_the_bytes_of_the_log(
    kafka_tools: ToolRunner, node: Node, on_disk: list[Read]
) -> None:
    assert len(on_disk) > 20
    assert consume(kafka_tools, node, len(on_disk), "--offset", "earliest") == on_disk
    middle = on_disk[len(on_disk) // 2 :]
    assert consume(kafka_tools, node, len(middle), "--offset", str(middle[0].offset)) == middle


def test_the_command_of_the_page_prints_every_record(
    kafka_tools: ToolRunner, node: Node, on_disk: list[Read]
) -> None:
    line = typed(page_block("docs/metadata-topic.md", "console", "kafka-console-consumer.sh"))
    tool, *arguments = shlex.split(line.replace("localhost:9092", node.address))
    # Pasted, it goes on for ever.
    ends = ("--max-messages", str(len(on_disk)), "--timeout-ms", "30000")
    done = kafka_tools.run(tool.removesuffix(".sh"), *arguments, *ends)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert [bytes_of(value) for value in done.stdout.splitlines()] == [one.value for one in on_disk]


def test_the_property_of_the_page_is_the_one_that_these_tests_set() -> None:
    (line,) = page_block("docs/metadata-topic.md", "properties", "readable").splitlines()
    assert dict([line.split("=")]).items() <= READABLE.items()


def test_it_reads_as_a_committed_reader_too(
    kafka_tools: ToolRunner, node: Node, on_disk: list[Read]
) -> None:
    committed = ("--offset", "earliest", "--isolation-level", "read_committed")
    assert consume(kafka_tools, node, len(on_disk), *committed) == on_disk


def test_kafkas_tools_show_the_topic_and_its_offsets(
    kafka_tools: ToolRunner, node: Node, on_disk: list[Read]
) -> None:
    servers = ("--bootstrap-server", node.address)
    topics = ("kafka-topics", *servers)
    assert CLUSTER_METADATA_TOPIC in kafka_tools.printed(*topics, "--list").split()
    described = kafka_tools.printed(*topics, "--describe", "--topic", CLUSTER_METADATA_TOPIC)
    assert "TopicId: AAAAAAAAAAAAAAAAAAAAAQ" in described
    assert "Leader: 1\tReplicas: 1\tIsr: 1" in described
    ends = {"-1": on_disk[-1].offset + 1, "-2": 0, "-3": on_disk[-1].offset}
    first_of_last = next(one for one in on_disk if one.timestamp == on_disk[-1].timestamp)
    ends["-3"] = ends[str(on_disk[-1].timestamp)] = first_of_last.offset
    for wanted, offset in ends.items():
        arguments = ("--topic-partitions", f"{CLUSTER_METADATA_TOPIC}:0", "--time", wanted)
        found = kafka_tools.printed("kafka-get-offsets", *servers, *arguments)
        assert found.strip() == f"{CLUSTER_METADATA_TOPIC}:0:{offset}", wanted


@pytest.mark.parametrize("kind", READERS)
def test_other_clients_read_the_bytes_of_the_log(
    kind: type[ConfluentReader | KafkaPythonReader], node: Node, on_disk: list[Read]
) -> None:
    assert read_all(kind, node.address, on_disk[-1].offset) == on_disk


@pytest.mark.slow
def test_sparks_connector_reads_the_bytes_of_the_log(
    node: Node, on_disk: list[Read], kafka_jars: JarsOf, tmp_path: Path
) -> None:
    places = (node.address, kafka_jars(SPARK_CONNECTOR), tmp_path / "checkpoints")
    for kind, rows in json.loads(run_spark_program(read_metadata, *places)).items():
        found = [Read(offset, stamp, bytes.fromhex(value)) for offset, stamp, value in rows]
        # Behind them may be the creation of __consumer_offsets, for the connector's consumer.
        assert found[: len(on_disk)] == on_disk, kind


def fill(controller_servers: str, prefix: str) -> None:
    with RawClient(controller_servers) as controller:
        for number in range(80):
            create_topic(controller, f"{prefix}-{number}")


def reset_reads(
    kind: type[ConfluentReader | KafkaPythonReader], servers: str, reset: str, create: str
) -> list[Read]:
    """Begin at offset 0, which is gone; return the first records after the client found out."""
    with closing(kind(servers, 0, reset=reset)) as reader:
        for _ in range(20):
            reader.poll()
        # A reader that goes on at the end has nothing until there is something new.
        with RawClient(servers) as broker:
            create_topic(broker, create)
        wait_for(lambda: reader.poll() or reader.records, "something is read")
        return reader.records


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
async def test_deleted_offsets_are_out_of_range_and_the_client_starts_again(
    kind: type[ConfluentReader | KafkaPythonReader],
) -> None:
    async with AsyncCluster(overrides=SETTINGS) as cluster:
        (node_id,) = cluster.node_ids
        servers = cluster.bootstrap_servers
        await asyncio.to_thread(fill, cluster.controller_servers, "first")
        start = await move_start(cluster.node(node_id))
        end = cluster.node(node_id).shared_server.raft.log.log_end_offset
        assert 0 < start < end

        def look() -> None:
            with RawClient(servers) as broker:
                gone = fetch(broker, fetch_request(start - 1))
                assert gone.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
                there = fetch(broker, fetch_request(start))
                assert (there.error_code, there.log_start_offset) == (ErrorCode.NONE, start)
                for place in (-2, -4):
                    (earliest,) = list_offsets(broker, place)
                    assert earliest.offset == start
                # The oldest record that is there is the first for any earlier time.
                (by_time,) = list_offsets(broker, 0)
                assert by_time.offset == start

        await asyncio.to_thread(look)
        directory = next(cluster.folder.rglob("__cluster_metadata-0"))
        on_disk = [one for one in records_on_disk(directory) if one.offset >= start]
        assert await asyncio.to_thread(read_all, kind, servers, end - 1) == on_disk
        anew = await asyncio.to_thread(reset_reads, kind, servers, EARLIEST, "one")
        assert anew[: len(on_disk)] == on_disk
        newest = await asyncio.to_thread(reset_reads, kind, servers, LATEST, "two")
        assert newest[0].offset > on_disk[-1].offset


@pytest.mark.slow
async def test_a_consumer_reads_on_while_files_that_it_has_read_go() -> None:
    async with AsyncCluster(overrides=SETTINGS) as cluster:
        (node_id,) = cluster.node_ids
        servers, read = cluster.bootstrap_servers, list[int]()

        def read_slowly() -> None:
            with RawClient(servers) as broker:
                offset = 0
                while offset < 700:
                    got = fetch(broker, fetch_request(offset, max_bytes=1, min_bytes=1))
                    if got.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        (earliest,) = list_offsets(broker, -2)
                        assert earliest.offset > offset
                        offset = earliest.offset
                        read.append(-1)
                        continue
                    assert got.error_code == ErrorCode.NONE
                    if got.records:
                        read.append(offset)
                        offset = int.from_bytes(got.records[:8]) + 1
                        offset += int.from_bytes(got.records[23:27])

        reading = asyncio.create_task(asyncio.to_thread(read_slowly))
        for number in range(6):
            await asyncio.to_thread(fill, cluster.controller_servers, f"round-{number}")
            await move_start(cluster.node(node_id))
        await reading
        offsets = [offset for offset in read if offset >= 0]
        assert offsets == sorted(set(offsets))
        assert not cluster.node(node_id).shared_server.raft.is_stopped
