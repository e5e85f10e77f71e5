"""A node with two log directories, and the place of each replica."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.log_dir_requests import Replica, replicas
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce
from tests.support.replicated import create_topic
from tests.support.waiting import wait_for

from kvorum.node.embedded.node import DATA_DIRECTORY
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode

NODE = 1


OTHER = "other"


def two_directories(folder: Path, overrides: Mapping[str, str] | None = None) -> Cluster:
    """Return a node with two log directories, not started."""
    directories = f"{folder / DATA_DIRECTORY},{folder / OTHER}"
    settings = {"log.dirs": directories, **(overrides or {})}
    return Cluster(controllers=1, brokers=1, folder=folder, overrides=settings)


def hosted(cluster: Cluster, broker: RawClient, topic: str) -> str:
    """Create a topic with some records; return the name of its directory."""
    create_topic(cluster, topic, [NODE])
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
