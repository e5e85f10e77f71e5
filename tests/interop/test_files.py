"""Real Kafka reads the files that a kvorum node writes, and the other way round."""

from pathlib import Path

import pytest
from tests.interop.metadata_shell import SHELL_LEVEL
from tests.support.clients.driver import KafkaPythonDriver, TopicWish
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import STANDALONE, Node
from tests.support.waiting import asked_until

TOPICS = {"files-one", "files.two", "files-three"}


def _make_topics(bootstrap_servers: str) -> None:
    with KafkaPythonDriver(bootstrap_servers) as driver:
        configs = {"retention.ms": "3600000"}
        made = driver.create_topics([TopicWish(name, 3, configs=configs) for name in TOPICS])
        assert {outcome.code for outcome in made.values()} == {0}
        assert driver.create_topics([TopicWish("files-gone")])["files-gone"].code == 0
        assert driver.delete_topic("files-gone").code == 0


@pytest.fixture(scope="module")
def stopped_node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """A kvorum node that made topics and was stopped twice, so that two epochs are in its log."""
    node = Node(tmp_path_factory.mktemp("stopped-node")).format((*STANDALONE, *SHELL_LEVEL))
    with node:
        _make_topics(node.address)
    with node:
        pass
    return node


def _log_files(node: Node, *endings: str) -> list[Path]:
    found = sorted(file for ending in endings for file in node.metadata_log.glob(f"*{ending}"))
    assert found
    return found


def test_kafka_dump_log_finds_nothing_wrong_with_segments_and_snapshots(
    stopped_node: Node, kafka_tools: ToolRunner
) -> None:
    for file in _log_files(stopped_node, ".log", ".checkpoint"):
        dumped = kafka_tools.dumped(file, "--cluster-metadata-decoder")
        assert "baseOffset: 0 " in dumped
        for complaint in ("isvalid: false", "Error at", "invalid bytes"):
            assert complaint not in dumped, file


def test_kafka_dump_log_finds_the_indexes_in_step_with_their_segments(
    stopped_node: Node, kafka_tools: ToolRunner
) -> None:
    for file in _log_files(stopped_node, ".index", ".timeindex"):
        dumped = kafka_tools.dumped(file)
        for complaint in ("ismatch", "out of order", "not found", "Found"):
            assert complaint not in dumped, file


def test_kafka_metadata_shell_shows_the_topics(stopped_node: Node, kafka_tools: ToolRunner) -> None:
    (segment,) = _log_files(stopped_node, ".log")
    command = ["--snapshot", str(segment), "ls", "/image/topics/byName"]
    # Of a segment the shell shows what it has read when it has read a first part of it.
    shown = asked_until(
        lambda: kafka_tools.run("kafka-metadata-shell", *command),
        lambda shown: set(shown.stdout.split()) == TOPICS,
        "the shell shows the topics",
    )
    assert shown.exit_code == 0
    assert set(shown.stdout.split()) == TOPICS


def test_kafka_storage_info_finds_the_directory_in_order(
    stopped_node: Node, kafka_tools: ToolRunner
) -> None:
    info = kafka_tools.run("kafka-storage", "info", "-c", str(stopped_node.properties))
    assert (info.exit_code, info.stderr) == (0, "")
    assert info.stdout.startswith(f"Found log directory:\n  {stopped_node.data}\n")
    assert f"cluster.id={stopped_node.cluster_id}" in info.stdout
    assert "node.id=1" in info.stdout


def test_a_real_node_goes_on_with_what_ours_wrote(stopped_node: Node, java: Java) -> None:
    theirs = Node(stopped_node.folder, java=java)
    with theirs, KafkaPythonDriver(theirs.address) as driver:
        assert driver.topics() == TOPICS
        assert driver.topic_config("files-one")["retention.ms"] == "3600000"


def test_ours_goes_on_with_what_a_real_node_wrote(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner
) -> None:
    with Node(tmp_path, java=java).format(tools=kafka_tools) as theirs:
        _make_topics(theirs.address)
    with Node(tmp_path) as ours, KafkaPythonDriver(ours.address) as driver:
        assert driver.topics() == TOPICS
        assert driver.topic_config("files-one")["retention.ms"] == "3600000"
