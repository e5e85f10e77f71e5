"""Records in their frame, and the image against logs and snapshots that real nodes wrote."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.golden_data import (
    first_offset,
    log_records,
    metadata_directories,
    raw_records,
    snapshot_records,
    snapshots,
)

from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.errors import MetadataParseError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.record_frame import decode_record, encode_record
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.zk_migration_state_record import ZkMigrationStateRecord
from kvorum.wire.primitives import Message


def comparable(image: MetadataImage) -> MetadataImage:
    """The image without what a snapshot cannot hold, and without a leftover of Kafka's.

    Kafka keeps the configuration of a topic that was made, configured and removed again between
    two images; the log itself says that it is gone.
    """
    resources = image.configs.resources
    for kind, name in list(resources):
        if kind == ResourceType.TOPIC and name not in image.topics.ids:
            resources = resources.delete((kind, name))
    return replace(image, last_offset=0, configs=ConfigsImage(resources))


def starting_point(directory: Path) -> tuple[MetadataImage, int]:
    """The image to fold the log onto, and the offset to begin at."""
    first = first_offset(directory)
    if first == 0:
        return MetadataImage(), 0
    end, file = min((end, file) for end, file in snapshots(directory).items() if end >= first)
    return MetadataImage().apply_all(snapshot_records(file, end)), end


def test_every_record_is_written_back_as_it_was(golden_sets: Path) -> None:
    count = 0
    for directory in metadata_directories(golden_sets):
        for file in [*directory.glob("*.log"), *directory.glob("*.checkpoint")]:
            for _, value in raw_records(file):
                assert encode_record(*decode_record(value)) == value
                count += 1
    assert count > 10_000


def test_every_log_folds_into_its_own_snapshots(golden_sets: Path) -> None:
    compared = 0
    for directory in metadata_directories(golden_sets):
        image, offset = starting_point(directory)
        for end, file in snapshots(directory).items():
            if end <= offset:
                continue
            records = [record for record in log_records(directory, offset) if record[2] < end]
            image, offset = image.apply_all(records), end
            expected = MetadataImage().apply_all(snapshot_records(file, end))
            assert comparable(image) == comparable(expected), file
            compared += 1
        assert image.apply_all(log_records(directory, offset)).transaction is None
    assert compared > 12


def test_batching_makes_no_difference(golden_sets: Path) -> None:
    for directory in metadata_directories(golden_sets):
        start, offset = starting_point(directory)
        records = list(log_records(directory, offset))
        whole = start.apply_all(records)
        for size in (1, 7, 100):
            image = start
            for first in range(0, len(records), size):
                image = image.apply_all(records[first : first + size])
            assert image == whole


def in_order_of_names(message: Message) -> Message:
    """The record with its inner lists sorted: Kafka writes them in the order of a hash map."""
    if isinstance(message, RegisterBrokerRecord | RegisterControllerRecord):
        message.end_points.sort(key=lambda endpoint: endpoint.name)
        message.features.sort(key=lambda feature: feature.name)
    if isinstance(message, ClientQuotaRecord):
        message.entity.sort(key=lambda part: part.entity_type)
    return message


def test_snapshots_hold_the_records_that_kafka_writes(golden_sets: Path) -> None:
    compared = 0
    for directory in metadata_directories(golden_sets):
        for end, file in snapshots(directory).items():
            theirs = [
                (in_order_of_names(message), version)
                for message, version, _ in snapshot_records(file, end)
                # 3.9.1 still wrote it; it says that no migration is going on.
                if not isinstance(message, ZkMigrationStateRecord)
            ]
            ours = list(image_records(MetadataImage().apply_all(snapshot_records(file, end))))
            assert sorted(encode_record(*record) for record in ours) == sorted(
                encode_record(*record) for record in theirs
            ), file
            kinds = list(dict.fromkeys(message.NAME for message, _ in ours))
            assert kinds == list(dict.fromkeys(message.NAME for message, _ in theirs))
            compared += 1
    assert compared > 12


def test_each_partition_follows_its_topic(golden_sets: Path) -> None:
    directory = golden_sets / "dynamic-4.3.1" / "metadata" / "controller-1"
    image = MetadataImage().apply_all(log_records(directory / "__cluster_metadata-0"))
    current = b""
    partitions = 0
    for message, _ in image_records(image):
        if isinstance(message, TopicRecord):
            current = message.topic_id
        elif isinstance(message, PartitionRecord):
            assert message.topic_id == current
            partitions += 1
    assert partitions > 50


def test_topics_are_those_that_the_tools_reported(golden_sets: Path) -> None:
    """At some moment of the run there were just the topics that kafka-topics printed."""
    for name in ("dynamic-4.3.1", "static-3.9.1"):
        (tool_output,) = (golden_sets / name / "tools").glob("*-topics-list.txt")
        (described,) = (golden_sets / name / "tools").glob("*-topics-describe.txt")
        listed = topics_listed_by(tool_output.read_text(encoding="utf-8"))
        rows = [
            (match[1], int(match[2]), int(match[3]), match[4], match[5])
            for match in PARTITION_LINE.finditer(described.read_text(encoding="utf-8"))
        ]
        assert len(listed) > 20
        assert len(rows) == 3
        directory = golden_sets / name / "metadata" / "controller-1" / "__cluster_metadata-0"
        image, offset = starting_point(directory)
        seen_topics = seen_partitions = False
        for record in log_records(directory, offset):
            image = image.apply_all([record])
            seen_topics = seen_topics or frozenset(image.topics.ids) == listed
            seen_partitions = seen_partitions or partition_rows(image, rows[0][0]) == rows
        assert seen_topics
        assert seen_partitions


PartitionRow = tuple[str, int, int, str, str]
"""Topic, partition, leader, replicas and ISR as kafka-topics prints them."""


PARTITION_LINE = re.compile(
    r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: (\d+)\tReplicas: (\S+)\tIsr: (\S+)"
)


def topics_listed_by(text: str) -> frozenset[str]:
    """The names that ``kafka-topics --list`` printed, between log lines in older releases."""
    _, _, rest = text.partition("--- stdout\n")
    lines = rest.partition("--- stderr")[0].splitlines()
    return frozenset(line for line in lines if re.fullmatch(r"[a-zA-Z0-9._-]+", line))


def partition_rows(image: MetadataImage, name: str) -> list[PartitionRow]:
    topic = image.topics.by_name(name)
    if topic is None:
        return []
    return [
        (
            name,
            index,
            partition.leader,
            ",".join(map(str, partition.replicas)),
            ",".join(map(str, partition.isr)),
        )
        for index, partition in topic.sorted_partitions()
    ]


def test_configs_of_other_releases_are_skipped() -> None:
    image = MetadataImage().apply_all(
        [
            (ConfigRecord(2, "t", "no.such.key", "1"), 0, 0),
            (ConfigRecord(16, "s", "no.such.key", "1"), 0, 1),
            (ConfigRecord(32, "g", "no.such.key", "1"), 0, 2),
            (ConfigRecord(8, "1", "root", "INFO"), 0, 3),
            (ConfigRecord(4, "1", "no.such.key", "1"), 0, 4),
        ]
    )
    assert list(image.configs.resources) == [(4, "1")]


def test_a_no_op_is_four_bytes() -> None:
    assert encode_record(NoOpRecord(), 0) == b"\x01\x14\x00\x00"
    assert decode_record(b"\x01\x14\x00\x00") == (NoOpRecord(), 0)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "ends inside its frame version"),
        (b"\x00\x14\x00\x00", "unknown frame version 0"),
        (b"\x02\x14\x00\x00", "unknown frame version 2"),
        (b"\x01", "ends inside its type"),
        (b"\x01\x14", "ends inside its version"),
        (b"\x01\x06\x00\x00", "unknown metadata record type 6"),
        (b"\x01\xe7\x07\x00\x00", "unknown metadata record type 999"),
        (b"\x01\x14\x01\x00", "NoOpRecord has no version 1"),
        (b"\x01\x14\x00\x00\x00", "NoOpRecord"),
        (b"\x01\x14\x00", "NoOpRecord"),
        (b"\x01\x80\x80\x02\x00\x00", "too large: 32768"),
        (b"\x01\xff\xff\xff\xff\xff\xff", "unterminated"),
        (b"\x01\x02\x00\x05t", "TopicRecord"),
    ],
)
def test_what_is_not_a_record_is_refused(value: bytes, problem: str) -> None:
    with pytest.raises(MetadataParseError, match=problem):
        decode_record(value)


def test_only_metadata_records_go_into_the_frame() -> None:
    with pytest.raises(TypeError, match="LeaderChangeMessage is not a metadata record"):
        encode_record(LeaderChangeMessage(), 0)


@given(st.text(max_size=20), st.binary(min_size=16, max_size=16))
def test_round_trip(name: str, topic_id: bytes) -> None:
    record = TopicRecord(name=name, topic_id=topic_id)
    assert decode_record(memoryview(encode_record(record, 0))) == (record, 0)


@given(st.binary(max_size=40))
def test_rubbish_gives_one_clear_error(value: bytes) -> None:
    try:
        message, version = decode_record(value)
    except MetadataParseError:
        return
    message.encode(version)
