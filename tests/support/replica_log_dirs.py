"""The log directories of a broker: which replica is where, and how one moves to the other."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce
from tests.support.replicated_topics import create_replicated
from tests.support.waiting import wait_for

from kvorum.node.embedded.node import DATA_DIRECTORY
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from kvorum.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


class Replica(NamedTuple):
    """A log of partition 0 of a topic, as DescribeLogDirs has it; the directory by its name."""

    directory: str
    is_future: bool
    offset_lag: int


def alter(client: RawClient, topic: str, directory: Path | str, *, version: int = 2) -> int:
    """Ask for a move of partition 0; return the code."""
    wish = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(topic, [0])
    place = AlterReplicaLogDirsRequest.AlterReplicaLogDir(str(directory), [wish])
    request = AlterReplicaLogDirsRequest([place])
    (result,) = client.ask(request, AlterReplicaLogDirsResponse, version).results
    assert result.topic_name == topic
    (partition,) = result.partitions
    assert partition.partition_index == 0
    return partition.error_code


def described(
    client: RawClient,
) -> dict[tuple[str, str], DescribeLogDirsResponse.DescribeLogDirsPartition]:
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
    return [
        Replica(directory, one.is_future_key, one.offset_lag)
        for (directory, name), one in described(client).items()
        if name == topic
    ]


NODE = 1


OTHER = "other"


def two_directories(folder: Path, overrides: Mapping[str, str] | None = None) -> Cluster:
    """Return a node with two log directories, not started."""
    settings = {"log.dirs": f"{folder / DATA_DIRECTORY},{folder / OTHER}", **(overrides or {})}
    return Cluster(controllers=1, brokers=1, folder=folder, overrides=settings)


def hosted(cluster: Cluster, broker: RawClient, topic: str) -> str:
    """Create a topic with some records; return the name of its directory."""
    create_replicated(cluster, topic, [NODE])
    wait_for(lambda: fetch(broker, topic, 0).error_code == 0, "it is hosted")
    for number in range(5):
        assert produce(broker, topic, batch(b"%d" % number)).error_code == ErrorCode.NONE
    (replica,) = replicas(broker, topic)
    return replica.directory


def the_other(directory: str) -> str:
    (other,) = {DATA_DIRECTORY, OTHER} - {directory}
    return other


def wait_until_moved(broker: RawClient, topic: str, directory: str) -> None:
    wait_for(
        lambda: replicas(broker, topic) == [Replica(directory, False, 0)],
        f"{topic} is in {directory}",
        otherwise=lambda: replicas(broker, topic),
    )


def names_in(folder: Path, topic: str) -> list[str]:
    return sorted(path.name for path in folder.glob(f"{topic}-0*"))
