"""Replicas that move from one log directory of a broker to another, over the wire (KIP-113)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, produce, values
from tests.support.replica_log_dirs import (
    NODE,
    OTHER,
    Replica,
    alter,
    hosted,
    names_in,
    replicas,
    the_other,
    two_directories,
    wait_until_moved,
)
from tests.support.replicated_topics import topic_id_of
from tests.support.waiting import wait_for

from kvorum.node.embedded.node import DATA_DIRECTORY
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with two_directories(tmp_path) as cluster:
        yield cluster


@pytest.fixture
def broker(cluster: Cluster) -> Iterator[RawClient]:
    with RawClient(cluster.bootstrap_servers) as client:
        yield client


def assigned(cluster: Cluster, topic: str) -> bytes:
    """Return the id of the directory in which the metadata has a topic's replica."""
    image = cluster.node(NODE).shared_server.loader.published
    return image.topics.by_id[topic_id_of(cluster, topic)].partitions[0].directory(NODE)


def id_of(cluster: Cluster, directory: str) -> bytes:
    directories = cluster.node(NODE).shared_server.directories
    names = [one.name for one in directories.log_directories]
    return directories.log_directory_ids[names.index(directory)]


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_moves_to_the_other_directory(
    tmp_path: Path, cluster: Cluster, broker: RawClient, version: int
) -> None:
    here = hosted(cluster, broker, "moving")
    there = the_other(here)
    log = (tmp_path / here / "moving-0" / f"{0:020}.log").read_bytes()
    assert alter(broker, "moving", tmp_path / there, version=version) == ErrorCode.NONE
    wait_until_moved(broker, "moving", there)
    assert (tmp_path / there / "moving-0" / f"{0:020}.log").read_bytes() == log
    (left,) = names_in(tmp_path / here, "moving")
    assert left.endswith("-delete")
    assert names_in(tmp_path / there, "moving") == ["moving-0"]
    assert assigned(cluster, "moving") == id_of(cluster, there)
    assert produce(broker, "moving", batch(b"5")).base_offset == 5
    assert values(fetch(broker, "moving", 0)) == [b"%d" % number for number in range(6)]
    # And back again, to where its former directory waits for its deletion.
    assert alter(broker, "moving", tmp_path / here) == ErrorCode.NONE
    wait_until_moved(broker, "moving", here)
    assert values(fetch(broker, "moving", 0)) == [b"%d" % number for number in range(6)]
    assert assigned(cluster, "moving") == id_of(cluster, here)


def test_a_moved_replica_is_there_after_a_start(tmp_path: Path) -> None:
    with two_directories(tmp_path) as cluster, RawClient(cluster.bootstrap_servers) as broker:
        there = the_other(hosted(cluster, broker, "moving"))
        assert alter(broker, "moving", tmp_path / there) == ErrorCode.NONE
        wait_until_moved(broker, "moving", there)
    with two_directories(tmp_path) as cluster, RawClient(cluster.bootstrap_servers) as broker:
        assert replicas(broker, "moving") == [Replica(there, False, 0)]
        assert len(values(fetch(broker, "moving", 0))) == 5


def test_a_move_to_where_the_replica_is_changes_nothing(
    tmp_path: Path, cluster: Cluster, broker: RawClient
) -> None:
    here = hosted(cluster, broker, "staying")
    assert alter(broker, "staying", tmp_path / here) == ErrorCode.NONE
    assert replicas(broker, "staying") == [Replica(here, False, 0)]
    assert names_in(tmp_path / the_other(here), "staying") == []


def test_a_replica_that_is_not_there_yet_is_made_in_the_directory_asked_for(
    tmp_path: Path, cluster: Cluster, broker: RawClient
) -> None:
    for directory in (DATA_DIRECTORY, OTHER):
        topic = f"later-in-{directory}"
        assert alter(broker, topic, tmp_path / directory) == ErrorCode.REPLICA_NOT_AVAILABLE
        assert hosted(cluster, broker, topic) == directory
        place = id_of(cluster, directory)
        wait_for(lambda: assigned(cluster, topic) == place, "it is assigned")  # noqa: B023 - called at once


def test_what_cannot_move_is_refused(tmp_path: Path, cluster: Cluster, broker: RawClient) -> None:
    hosted(cluster, broker, "refused")
    assert alter(broker, "refused", tmp_path / "nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    # As in Kafka, the text is compared.
    assert alter(broker, "refused", f"{tmp_path / OTHER}/") == ErrorCode.LOG_DIR_NOT_FOUND
    long = "t" * 214
    assert alter(broker, long, tmp_path / OTHER) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert alter(broker, long[1:], tmp_path / OTHER) == ErrorCode.REPLICA_NOT_AVAILABLE


def test_no_replica_moves_to_a_cordoned_directory(tmp_path: Path) -> None:
    with (
        two_directories(tmp_path, {"cordoned.log.dirs": str(tmp_path / OTHER)}) as cluster,
        RawClient(cluster.bootstrap_servers) as broker,
    ):
        assert alter(broker, "topic", tmp_path / OTHER) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
