"""Records of a node of ours that Kafka's tools asked for, read by Kafka's other tools."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.metadata_shell import (
    SHELL_LEVEL,
    Shell,
    history,
    load,
    records_of,
    tree_text,
    without_provenance,
)
from tests.support.acls import WITH_AUTHORIZER
from tests.support.golden_data import snapshots
from tests.support.kafka.tools import ToolRunner
from tests.support.node import STANDALONE, Node

from kvorum.wire.records import read_batches

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
