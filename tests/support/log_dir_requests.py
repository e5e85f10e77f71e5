"""AlterReplicaLogDirs and DescribeLogDirs of one topic, as a raw client sends them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.support.raw_client import RawClient

from kvorum.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsRequestAlterReplicaLogDir,
    AlterReplicaLogDirsRequestAlterReplicaLogDirTopic,
    AlterReplicaLogDirsResponse,
)
from kvorum.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResponseDescribeLogDirsPartition,
)


class Replica(NamedTuple):
    """A log of partition 0 of a topic, as DescribeLogDirs has it; the directory by its name."""

    directory: str
    is_future: bool
    offset_lag: int


def alter(client: RawClient, topic: str, directory: Path | str, *, version: int = 2) -> int:
    """Ask for a move of partition 0; return the code."""
    wish = AlterReplicaLogDirsRequestAlterReplicaLogDirTopic(topic, [0])
    place = AlterReplicaLogDirsRequestAlterReplicaLogDir(str(directory), [wish])
    request = AlterReplicaLogDirsRequest([place])
    (result,) = client.ask(request, AlterReplicaLogDirsResponse, version).results
    assert result.topic_name == topic
    (partition,) = result.partitions
    assert partition.partition_index == 0
    return partition.error_code


def described(
    client: RawClient,
) -> dict[tuple[str, str], DescribeLogDirsResponseDescribeLogDirsPartition]:
    """Return what a broker says of partition 0 of its topics, by directory and topic."""
    response = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    return {
        (Path(directory.log_dir).name, topic.name): partition
        for directory in response.results
        for topic in directory.topics
        for partition in topic.partitions
        if partition.partition_index == 0
    }


def replicas(client: RawClient, topic: str) -> list[Replica]:
    """Return where a topic's partition 0 is."""
    return [
        Replica(directory, one.is_future_key, one.offset_lag)
        for (directory, name), one in described(client).items()
        if name == topic
    ]
