"""Kafka's tools for records on a node of ours: they verify, measure, delete, and look at files."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce, values
from tests.support.replica_log_dirs import (
    NODE,
    Replica,
    hosted,
    replicas,
    the_other,
    two_directories,
    wait_until_moved,
)
from tests.support.replicated_topics import (
    BROKERS,
    CONTROLLER,
    OVERRIDES,
    address_of,
    create_replicated,
    state_of,
    wait_for_isr,
)
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.broker.quota.replication_quota_manager import (
    ALTER_LOG_DIRS_RATE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from kvorum.metadata.configs_image import ResourceType
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode

COUNT: Final = 1000
PARTITIONS: Final = 3


@pytest.fixture(scope="module")
def node(kvorum_node: Node) -> Node:
    return kvorum_node


@pytest.fixture
def topic(node: Node, request: pytest.FixtureRequest) -> str:
    name = "".join(one if one.isalnum() else "-" for one in request.node.name)
    make_topics(node.address, TopicWish(name, partitions=PARTITIONS))
    return name


class Tools:
    def __init__(self, java: Java, runner: ToolRunner, servers: str) -> None:
        self._java = java
        self._runner = runner
        self._servers = servers

    def run(self, tool: str, *arguments: str) -> str:
        return self._runner.printed(tool, "--bootstrap-server", self._servers, *arguments)

    def events(self, tool: str, *arguments: str) -> list[dict[str, Any]]:
        """Return the lines of a tool that says everything in JSON, in a process of its own.

        Such a tool says what it has counted when its process ends.
        """
        command = [*self._java.command(tool), "--bootstrap-server", self._servers, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture
def tools(node: Node, java: Java, kafka_tools: ToolRunner) -> Tools:
    return Tools(java, kafka_tools, node.address)


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["name"] == name]


def verifiably_produce(tools: Tools, topic: str) -> dict[tuple[int, int], str]:
    """Produce records and return the value of each, by partition and offset."""
    arguments = ("--topic", topic, "--max-messages", str(COUNT), "--acks", "-1")
    events = tools.events("org.apache.kafka.tools.VerifiableProducer", *arguments)
    assert not named(events, "producer_send_error")
    (summary,) = named(events, "tool_data")
    assert (summary["sent"], summary["acked"]) == (COUNT, COUNT)
    sent = named(events, "producer_send_success")
    return {(one["partition"], one["offset"]): one["value"] for one in sent}


@pytest.mark.slow
def test_what_the_verifiable_producer_sent_the_verifiable_consumer_gets(
    tools: Tools, topic: str
) -> None:
    sent = verifiably_produce(tools, topic)
    assert sorted(sent.values(), key=int) == [str(number) for number in range(COUNT)]
    arguments = ("--topic", topic, "--max-messages", str(COUNT), "--group-id", topic, "--verbose")
    events = tools.events("org.apache.kafka.tools.VerifiableConsumer", *arguments)
    read = named(events, "record_data")
    assert {(one["partition"], one["offset"]): one["value"] for one in read} == sent
    assert all(one["success"] for one in named(events, "offsets_committed"))


def test_the_perf_tools_send_and_receive_every_record(tools: Tools, topic: str) -> None:
    count = ("--num-records", str(COUNT))
    sent = tools.run(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic",
        topic,
        *count,
        "--record-size",
        "100",
        "--throughput",
        "-1",
    )
    assert f"{COUNT} records sent" in sent
    received = tools.run(
        "org.apache.kafka.tools.ConsumerPerformance", "--topic", topic, *count, "--hide-header"
    )
    assert received.strip().splitlines()[-1].split(", ")[4] == str(COUNT)


def test_the_latency_from_end_to_end_is_measured(tools: Tools, topic: str) -> None:
    told = tools.run(
        "org.apache.kafka.tools.EndToEndLatency",
        "--topic",
        topic,
        "--num-records",
        "100",
        "--producer-acks",
        "all",
        "--record-size",
        "100",
    )
    assert re.search(r"^Avg latency: \d+\.\d+ ms$", told, re.MULTILINE), told


def test_records_are_deleted_and_offsets_listed(tools: Tools, topic: str, tmp_path: Path) -> None:
    sent = verifiably_produce(tools, topic)
    # The producer may leave a partition without a record.
    ends = {
        number: sum(partition == number for partition, _ in sent) for number in range(PARTITIONS)
    }
    deleted = {number: end // 2 for number, end in ends.items()}

    def offsets(time: str) -> dict[int, int]:
        lines = tools.run("kafka-get-offsets", "--topic", topic, "--time", time).splitlines()
        return {int(one.split(":")[1]): int(one.split(":")[2]) for one in lines}

    assert offsets("latest") == ends
    file = tmp_path / "delete.json"
    wanted = [
        {"topic": topic, "partition": number, "offset": offset}
        for number, offset in deleted.items()
    ]
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))
    told = tools.run("org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(file))
    for number, offset in deleted.items():
        assert f"partition: {topic}-{number}\tlow_watermark: {offset}" in told
    assert offsets("earliest") == deleted
    assert offsets("latest") == ends


def test_the_directories_and_files_are_those_of_the_records(
    tools: Tools, topic: str, node: Node, kafka_tools: ToolRunner
) -> None:
    sent = verifiably_produce(tools, topic)
    described = tools.run("kafka-log-dirs", "--describe", "--topic-list", topic)
    (broker,) = json.loads(described.splitlines()[-1])["brokers"]
    (directory,) = broker["logDirs"]
    assert (directory["error"], directory["logDir"]) == (None, str(node.data))
    sizes = {one["partition"]: one["size"] for one in directory["partitions"]}
    for number in range(PARTITIONS):
        segment = node.data / f"{topic}-{number}" / f"{0:020}.log"
        assert sizes[f"{topic}-{number}"] == segment.stat().st_size
        dumped = kafka_tools.run("kafka-dump-log", "--files", str(segment), "--print-data-log")
        found = re.findall(r"\| offset: (\d+) .* payload: (\d+)$", dumped.stdout, re.MULTILINE)
        expected = {offset: one for (partition, offset), one in sent.items() if partition == number}
        assert {int(offset): value for offset, value in found} == expected


RATE = 1_000_000


class Reassignment:
    """One plan, given to kafka-reassign-partitions."""

    def __init__(self, tools: ToolRunner, servers: str, file: Path) -> None:
        self._tools = tools
        self._servers = servers
        self._file = file

    def plan(self, topic: str, new: list[int], log_dirs: list[str]) -> None:
        """Say where the replicas of partition 0 are to be."""
        place = {"topic": topic, "partition": 0, "replicas": new, "log_dirs": log_dirs}
        self._file.write_text(json.dumps({"version": 1, "partitions": [place]}), encoding="utf-8")

    def run(self, *arguments: str) -> str:
        where = ("--bootstrap-server", self._servers, "--reassignment-json-file", str(self._file))
        return self._tools.printed("kafka-reassign-partitions", *where, *arguments)


def settings(cluster: Cluster, kind: ResourceType, name: str) -> dict[str, str]:
    return dict(cluster.node(CONTROLLER).shared_server.loader.published.configs.of(kind, name))


def test_a_replica_moves_to_another_log_directory(kafka_tools: ToolRunner, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    with two_directories(folder) as cluster, RawClient(cluster.bootstrap_servers) as broker:
        there = the_other(hosted(cluster, broker, "moving"))
        reassignment = Reassignment(kafka_tools, cluster.bootstrap_servers, tmp_path / "plan.json")
        reassignment.plan("moving", [NODE], [str(folder / there)])
        said = reassignment.run("--execute", "--replica-alter-log-dirs-throttle", str(RATE))
        assert f"Successfully started moving log directory to {folder / there} for replica" in said
        assert settings(cluster, ResourceType.BROKER, str(NODE))[ALTER_LOG_DIRS_RATE] == str(RATE)
        wait_until_moved(broker, "moving", there)
        said = reassignment.run("--verify")
        assert f"Reassignment of replica moving-0-{NODE} completed successfully." in said
        assert ALTER_LOG_DIRS_RATE not in settings(cluster, ResourceType.BROKER, str(NODE))
        where = ("--bootstrap-server", cluster.bootstrap_servers)
        asked = ("--describe", "--topic-list", "moving")
        described = kafka_tools.printed("kafka-log-dirs", *where, *asked)
        (line,) = [one for one in described.splitlines() if one.startswith("{")]
        (described_broker,) = json.loads(line)["brokers"]
        found = {
            Path(one["logDir"]).name: [
                (each["partition"], each["offsetLag"], each["isFuture"])
                for each in one["partitions"]
            ]
            for one in described_broker["logDirs"]
        }
        assert found == {there: [("moving-0", 0, False)], the_other(there): []}
        assert replicas(broker, "moving") == [Replica(there, False, 0)]
        assert len(values(fetch(broker, "moving", 0))) == 5


@pytest.mark.slow
def test_a_throttled_replica_moves_to_another_broker(
    kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    first, second, third = BROKERS
    # The first fetch is never held back: it must not have everything.
    overrides = {**OVERRIDES, "replica.fetch.max.bytes": "1024"}
    with Cluster(controllers=1, brokers=3, overrides=overrides) as cluster:
        create_replicated(cluster, "moving", [first, second])
        wait_for_isr(cluster, "moving", {first, second})
        with RawClient(address_of(cluster, first)) as client:
            wait_for(lambda: fetch(client, "moving", 0).error_code == 0, "the leader takes fetches")
            for number in range(20):
                data = batch(b"%d" % number + bytes(10_000))
                assert produce(client, "moving", data).error_code == ErrorCode.NONE
        reassignment = Reassignment(kafka_tools, cluster.bootstrap_servers, tmp_path / "plan.json")
        reassignment.plan("moving", [first, third], ["any", "any"])
        # So slow that the move is under way until it is cancelled.
        reassignment.run("--execute", "--throttle", "1000")
        throttled = {LEADER_REPLICAS: f"0:{first},0:{second}", FOLLOWER_REPLICAS: f"0:{third}"}
        assert settings(cluster, ResourceType.TOPIC, "moving") == throttled
        for node_id in BROKERS:
            limits = settings(cluster, ResourceType.BROKER, str(node_id))
            assert limits == {LEADER_RATE: "1000", FOLLOWER_RATE: "1000"}
        assert "still in progress" in reassignment.run("--verify")
        reassignment.run("--cancel")
        assert state_of(cluster, "moving").replicas == (first, second)
        assert settings(cluster, ResourceType.TOPIC, "moving") == {}
        reassignment.run("--execute", "--throttle", str(RATE))
        wait_for_isr(cluster, "moving", {first, third})
        wait_for(
            lambda: state_of(cluster, "moving").adding_replicas == (),
            "the topic has moved",
            otherwise=lambda: state_of(cluster, "moving"),
        )
        assert "is completed" in reassignment.run("--verify")
        assert settings(cluster, ResourceType.TOPIC, "moving") == {}
        for node_id in BROKERS:
            assert settings(cluster, ResourceType.BROKER, str(node_id)) == {}
