"""Kafka's own tools read what our storage code wrote, with nothing of a node around it."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.interop.metadata_shell import SHELL_LEVEL, without_last_controls
from tests.support.clients.driver import KafkaPythonDriver, TopicWish
from tests.support.golden_data import metadata_directories
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import STANDALONE, Node
from tests.support.waiting import asked_until

from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.batch_header import split_batches
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.bootstrap_checkpoint import write_bootstrap_snapshot
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshot_writer import SnapshotWriter
from kvorum.storage.small_files.meta_properties import MetaProperties, write_meta_properties
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import read_batches

FILES = RealFileSystem()
SEGMENT_BYTES = 20_000
DECODER = "--cluster-metadata-decoder"


@dataclass(frozen=True)
class Written:
    """A data directory of ours, and the golden log that it was filled from."""

    directory: Path
    golden: Path

    @property
    def log(self) -> Path:
        return self.directory / "__cluster_metadata-0"

    @property
    def bootstrap_log(self) -> Path:
        """The metadata log of a directory that has only a bootstrap snapshot."""
        return self.directory / "bootstrap" / "__cluster_metadata-0"

    def files(self, suffix: str) -> list[Path]:
        found = sorted(self.log.glob(f"*{suffix}"))
        assert found
        return found


def snapshot_values(golden: Path) -> list[bytes]:
    """Return the metadata records of the latest golden snapshot."""
    latest = max(golden.glob("*.checkpoint"))
    data_batches = [batch for batch in read_batches(latest.read_bytes()) if not batch.is_control]
    return [bytes(record.value or b"") for batch in data_batches for record in batch.records()]


def batches_in(directory: Path) -> list[bytes]:
    paths = sorted(directory.glob("*.log"))
    cut = (split_batches(memoryview(path.read_bytes())) for path in paths)
    return [bytes(batch) for one in cut for _, batch in one]


def fill(log: MetadataLog, golden: Path) -> None:
    """Append a golden log batch by batch, truncate some of it away, and append it again."""
    batches = batches_in(golden)
    for batch in batches:
        log.local_log.append(batch)
    middle = len(batches) * 2 // 3
    log.local_log.truncate_to(int.from_bytes(batches[middle][:8]), now_ms=0)
    for batch in batches[middle:]:
        log.local_log.append(batch)


@pytest.fixture(scope="module")
def written(golden_sets: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    golden = next(
        path for path in metadata_directories(golden_sets) if "ladder-4.3.1" in path.parts
    )
    found = Written(tmp_path_factory.mktemp("written"), golden)
    config = LogConfig(segment_bytes=SEGMENT_BYTES)
    log = MetadataLog.open(found.log, files=FILES, config=config, now_ms=0)
    fill(log, golden)
    raw = log.create_snapshot(
        OffsetAndEpoch(log.log_end_offset, log.last_epoch), high_watermark=log.log_end_offset
    )
    assert raw is not None
    writer = SnapshotWriter(
        raw, epoch=log.last_epoch, last_contained_timestamp_ms=5_000, now_ms=6_000
    )
    writer.append(snapshot_values(golden), now_ms=6_000)
    writer.finish(now_ms=6_000)
    raw.freeze()
    log.local_log.close()
    properties = MetaProperties(cluster_id="a-cluster", node_id=1, directory_id=b"0123456789abcdef")
    write_meta_properties(found.directory, properties, FILES, now=datetime.now(UTC))
    write_bootstrap_snapshot(
        found.bootstrap_log,
        FILES,
        values=snapshot_values(golden)[:1],
        kraft_version=0,
        voters=None,
        now_ms=7_000,
    )
    return found


def decoded_lines(text: str) -> list[str]:
    """Return the dump's lines about batches and records, without places in the file."""
    lines = [line for line in text.splitlines() if line.startswith(("baseOffset", "|"))]
    return [re.sub(r"position: \d+", "position: *", line) for line in lines]


def test_kafka_dump_log_prints_our_segments_as_the_golden_ones(
    written: Written, kafka_tools: ToolRunner
) -> None:
    ours, golden = (
        [
            line
            for path in sorted(directory.glob("*.log"))
            for line in decoded_lines(
                kafka_tools.run("kafka-dump-log", DECODER, "--files", str(path)).stdout
            )
        ]
        for directory in (written.log, written.golden)
    )
    assert len(ours) > 1_000
    assert ours == golden


def test_kafka_dump_log_finds_our_indexes_right(written: Written, kafka_tools: ToolRunner) -> None:
    assert len(written.files(".log")) > 2
    for path in written.files(".index") + written.files(".timeindex"):
        for check in ([], ["--index-sanity-check"], ["--verify-index-only"]):
            dumped = kafka_tools.dumped(path, *check)
            assert dumped.startswith(f"Dumping {path}")
            for complaint in ("Mismatches", "mismatch", "Found timestamp", "out of order"):
                assert complaint not in dumped, path


def test_kafka_dump_log_notices_an_index_that_is_wrong(
    written: Written, kafka_tools: ToolRunner
) -> None:
    """The check above can fail."""
    index = written.files(".index")[0]
    good = index.read_bytes()
    index.write_bytes(good[:4] + (int.from_bytes(good[4:8]) + 500).to_bytes(4) + good[8:])
    try:
        dumped = kafka_tools.run("kafka-dump-log", "--files", str(index))
        assert "mismatch" in dumped.stdout.lower() or dumped.stderr or dumped.exit_code
    finally:
        index.write_bytes(good)


def test_kafka_dump_log_reads_our_snapshots(written: Written, kafka_tools: ToolRunner) -> None:
    values = snapshot_values(written.golden)
    for path, count in (
        (written.files(".checkpoint")[0], len(values)),
        (next(written.bootstrap_log.iterdir()), 1),
    ):
        dumped = kafka_tools.dumped(path, DECODER)
        assert "isvalid: false" not in dumped
        assert dumped.count("payload:") == count
        assert "SnapshotHeader" in dumped
        assert "SnapshotFooter" in dumped


def test_kafka_dump_log_reads_our_producer_state(written: Written, kafka_tools: ToolRunner) -> None:
    for path in written.files(".snapshot"):
        assert kafka_tools.dumped(path) == f"Dumping {path}\n"


def test_kafka_metadata_shell_loads_our_snapshot(
    written: Written, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    ours = written.files(".checkpoint")[0]
    snapshot = tmp_path / ours.name
    snapshot.write_bytes(without_last_controls(ours.read_bytes()))
    shown = kafka_tools.printed("kafka-metadata-shell", "--snapshot", str(snapshot), "ls", "/image")
    assert "topics" in shown
    assert "cluster" in shown


def test_kafka_storage_info_knows_our_directory(
    written: Written, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://localhost:0\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=localhost:1\n"
        f"log.dirs={written.directory}\n"
    )
    info = kafka_tools.printed("kafka-storage", "info", "--config", str(config))
    directory_id = "directory.id=MDEyMzQ1Njc4OWFiY2RlZg"
    metadata = f"{{cluster.id=a-cluster, {directory_id}, node.id=1, version=1}}"
    assert f"Found metadata: {metadata}" in info
    assert "problem" not in info.lower()


def kafka_topics(tools: ToolRunner, node: Node, *arguments: str) -> list[str]:
    return tools.printed("kafka-topics", "--bootstrap-server", node.address, *arguments).split()


def write_anew(directory: Path) -> int:
    """Replace a node's log by one of many small segments, written by us; return its end."""
    old = MetadataLog.open(directory, files=FILES, now_ms=0).local_log
    batches = batches_in(directory)
    old.truncate_to(0, now_ms=0)
    old.close()
    config = LogConfig(segment_bytes=500, index_interval_bytes=100)
    log = MetadataLog.open(directory, files=FILES, config=config, now_ms=0).local_log
    for batch in batches:
        log.append(batch)
    log.close()
    assert len(list(directory.glob("*.log"))) > 2
    return log.log_end_offset


@pytest.mark.slow
def test_a_real_node_goes_on_with_a_log_that_we_wrote_and_we_with_its(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner
) -> None:
    node = Node(tmp_path, java=java).format(tools=kafka_tools)
    with node:
        for name in ("one", "two"):
            kafka_topics(kafka_tools, node, "--create", "--topic", name)
    directory = node.metadata_log
    end_offset = write_anew(directory)
    with node:
        assert kafka_topics(kafka_tools, node, "--list") == ["one", "two"]
        kafka_topics(kafka_tools, node, "--create", "--topic", "three")
    assert (directory / "kvorum-flushed-offset").exists()
    log = MetadataLog.open(directory, files=FILES, now_ms=0)
    assert log.log_end_offset > end_offset
    assert log.recovery.torn_tail is None
    log.local_log.close()


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
