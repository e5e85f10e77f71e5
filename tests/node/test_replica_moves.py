"""Throttled replication, and replicas that move to another log directory (KIP-73, KIP-113)."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.node.embedded_cluster import append, set_config, set_config_at
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
from tests.support.replicated_topics import (
    BROKERS,
    CONTROLLER,
    OVERRIDES,
    address_of,
    create_replicated,
    log_bytes,
    state_of,
    topic_id_of,
    wait_for_isr,
)
from tests.support.waiting import wait_for

from kvorum.broker.quota.replication_quota_manager import (
    ALTER_LOG_DIRS_RATE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    UNLIMITED,
)
from kvorum.metadata.configs_image import ResourceType
from kvorum.node.embedded.node import DATA_DIRECTORY
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

VALUE_BYTES = 10_000
COUNT = 5


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[Cluster]:
    with two_directories(tmp_path) as moving:
        yield moving


@pytest.fixture
def broker(moving: Cluster) -> Iterator[RawClient]:
    with RawClient(moving.bootstrap_servers) as client:
        yield client


def assigned(moving: Cluster, topic: str) -> bytes:
    """Return the id of the directory in which the metadata has a topic's replica."""
    image = moving.node(NODE).shared_server.loader.published
    return image.topics.by_id[topic_id_of(moving, topic)].partitions[0].directory(NODE)


def id_of(moving: Cluster, directory: str) -> bytes:
    directories = moving.node(NODE).shared_server.directories
    names = [one.name for one in directories.log_directories]
    return directories.log_directory_ids[names.index(directory)]


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_moves_to_the_other_directory(
    tmp_path: Path, moving: Cluster, broker: RawClient, version: int
) -> None:
    here = hosted(moving, broker, "moving")
    there = the_other(here)
    log = (tmp_path / here / "moving-0" / f"{0:020}.log").read_bytes()
    assert alter(broker, "moving", tmp_path / there, version=version) == ErrorCode.NONE
    wait_until_moved(broker, "moving", there)
    assert (tmp_path / there / "moving-0" / f"{0:020}.log").read_bytes() == log
    (left,) = names_in(tmp_path / here, "moving")
    assert left.endswith("-delete")
    assert names_in(tmp_path / there, "moving") == ["moving-0"]
    assert assigned(moving, "moving") == id_of(moving, there)
    assert produce(broker, "moving", batch(b"5")).base_offset == 5
    assert values(fetch(broker, "moving", 0)) == [b"%d" % number for number in range(6)]
    # And back again, to where its former directory waits for its deletion.
    assert alter(broker, "moving", tmp_path / here) == ErrorCode.NONE
    wait_until_moved(broker, "moving", here)
    assert values(fetch(broker, "moving", 0)) == [b"%d" % number for number in range(6)]
    assert assigned(moving, "moving") == id_of(moving, here)


def test_a_moved_replica_is_there_after_a_start(tmp_path: Path) -> None:
    with two_directories(tmp_path) as moving, RawClient(moving.bootstrap_servers) as broker:
        there = the_other(hosted(moving, broker, "moving"))
        assert alter(broker, "moving", tmp_path / there) == ErrorCode.NONE
        wait_until_moved(broker, "moving", there)
    with two_directories(tmp_path) as moving, RawClient(moving.bootstrap_servers) as broker:
        assert replicas(broker, "moving") == [Replica(there, False, 0)]
        assert len(values(fetch(broker, "moving", 0))) == 5


def test_a_move_to_where_the_replica_is_changes_nothing(
    tmp_path: Path, moving: Cluster, broker: RawClient
) -> None:
    here = hosted(moving, broker, "staying")
    assert alter(broker, "staying", tmp_path / here) == ErrorCode.NONE
    assert replicas(broker, "staying") == [Replica(here, False, 0)]
    assert names_in(tmp_path / the_other(here), "staying") == []


def test_a_replica_that_is_not_there_yet_is_made_in_the_directory_asked_for(
    tmp_path: Path, moving: Cluster, broker: RawClient
) -> None:
    for directory in (DATA_DIRECTORY, OTHER):
        topic = f"later-in-{directory}"
        assert alter(broker, topic, tmp_path / directory) == ErrorCode.REPLICA_NOT_AVAILABLE
        assert hosted(moving, broker, topic) == directory
        place = id_of(moving, directory)
        wait_for(lambda: assigned(moving, topic) == place, "it is assigned")  # noqa: B023 - called at once


def test_what_cannot_move_is_refused(tmp_path: Path, moving: Cluster, broker: RawClient) -> None:
    hosted(moving, broker, "refused")
    assert alter(broker, "refused", tmp_path / "nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    # As in Kafka, the text is compared.
    assert alter(broker, "refused", f"{tmp_path / OTHER}/") == ErrorCode.LOG_DIR_NOT_FOUND
    long = "t" * 214
    assert alter(broker, long, tmp_path / OTHER) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert alter(broker, long[1:], tmp_path / OTHER) == ErrorCode.REPLICA_NOT_AVAILABLE


def test_no_replica_moves_to_a_cordoned_directory(tmp_path: Path) -> None:
    with (
        two_directories(tmp_path, {"cordoned.log.dirs": str(tmp_path / OTHER)}) as moving,
        RawClient(moving.bootstrap_servers) as broker,
    ):
        assert alter(broker, "topic", tmp_path / OTHER) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_directory_is_cordoned_while_the_broker_runs(
    tmp_path: Path, moving: Cluster, broker: RawClient
) -> None:
    def cordoned() -> set[str]:
        request = DescribeLogDirsRequest(topics=None)
        found = broker.ask(request, DescribeLogDirsResponse, 5).results
        return {Path(one.log_dir).name for one in found if one.is_cordoned}

    def registered() -> tuple[bytes, ...] | None:
        image = moving.node(NODE).shared_server.loader.published
        return image.cluster.brokers[NODE].cordoned_directories

    set_cordoned = partial(
        set_config_at, moving.bootstrap_servers, ResourceType.BROKER, str(NODE), "cordoned.log.dirs"
    )
    wait_for(lambda: registered() == (), "the registration says that none is cordoned")
    set_cordoned(str(tmp_path / OTHER))
    other = id_of(moving, OTHER)
    wait_for(lambda: registered() == (other,), "the controller knows")
    assert cordoned() == {OTHER}
    assert alter(broker, "topic", tmp_path / OTHER) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    set_cordoned("")
    wait_for(lambda: registered() == (), "the controller knows of the end")
    assert cordoned() == set()
    assert alter(broker, "topic", tmp_path / OTHER) == ErrorCode.REPLICA_NOT_AVAILABLE


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    overrides = {**OVERRIDES, "replica.fetch.max.bytes": "1024"}
    with Cluster(controllers=1, brokers=3, overrides=overrides) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("rate", "throttled"), [(LEADER_RATE, LEADER_REPLICAS), (FOLLOWER_RATE, FOLLOWER_REPLICAS)]
)
def test_a_throttled_replica_waits_and_its_consumers_do_not(
    cluster: Cluster, rate: str, throttled: str
) -> None:
    """The leader or the follower holds back what is new; a replica in sync is not held back."""
    topic = throttled.split(".", maxsplit=1)[0]
    leader, follower, other = BROKERS
    create_replicated(cluster, topic, [leader, follower, other])
    wait_for_isr(cluster, topic, set(BROKERS))
    cluster.kill(follower)
    wait_for_isr(cluster, topic, {leader, other})
    set_config(cluster, ResourceType.BROKER, "", rate, "1")
    set_config(cluster, ResourceType.TOPIC, topic, throttled, "*")
    with RawClient(address_of(cluster, leader)) as client:
        for number in range(COUNT):
            data = batch(b"%d" % number + bytes(VALUE_BYTES))
            assert produce(client, topic, data).error_code == ErrorCode.NONE
        cluster.restart(follower)
        # The replica in sync has everything; the other one at most what exceeded the quota.
        base = Path(cluster.node(CONTROLLER).shared_server.config.log_directories[0]).parents[1]
        # The follower fetches this from the same leader, again and again, in the same requests.
        free = f"{topic}-free"
        create_replicated(cluster, free, [leader, follower])
        for number in range(COUNT):
            append(cluster, free, b"%d" % number)
        wait_for_isr(cluster, free, {leader, follower})
        assert set(state_of(cluster, topic).isr) == {leader, other}
        assert len(values(fetch(client, topic, COUNT - 1))) == 1
        assert len(log_bytes(base, other, topic)) > COUNT * VALUE_BYTES
        assert len(log_bytes(base, follower, topic)) < 2 * VALUE_BYTES
        set_config(cluster, ResourceType.BROKER, "", rate, str(UNLIMITED))
        wait_for_isr(cluster, topic, set(BROKERS))
        assert log_bytes(base, follower, topic) == log_bytes(base, leader, topic)


def held_back(cluster: Cluster, broker: RawClient, folder: Path) -> tuple[str, str]:
    """Begin a move that does not end; return the directory before, and the one after it."""
    here = hosted(cluster, broker, "slow")
    for _ in range(COUNT):
        assert produce(broker, "slow", batch(bytes(VALUE_BYTES))).error_code == ErrorCode.NONE
    set_config(cluster, ResourceType.BROKER, "", ALTER_LOG_DIRS_RATE, "1")
    wait_for(
        lambda: bool(cluster.node(1).shared_server.loader.published.configs.of_cluster()),
        "the broker knows the bound",
    )
    assert alter(broker, "slow", folder / the_other(here)) == ErrorCode.NONE
    wait_until_held_back(broker, here)
    return here, the_other(here)


def wait_until_held_back(broker: RawClient, here: str) -> None:
    def is_slow() -> bool:
        found = {one.is_future: one for one in replicas(broker, "slow")}
        is_under_way = len(found) == 2 and found[False].directory == here
        return is_under_way and 0 < found[True].offset_lag < 5 + COUNT

    wait_for(is_slow, "the move is held back", otherwise=lambda: replicas(broker, "slow"))


def slow_cluster(folder: Path) -> Cluster:
    return two_directories(folder, {"replica.fetch.max.bytes": "1024"})


def test_a_move_goes_on_after_a_start(tmp_path: Path) -> None:
    with slow_cluster(tmp_path) as cluster, RawClient(cluster.bootstrap_servers) as broker:
        here, there = held_back(cluster, broker, tmp_path)
        assert produce(broker, "slow", batch(b"last")).error_code == ErrorCode.NONE
    with slow_cluster(tmp_path) as cluster, RawClient(cluster.bootstrap_servers) as broker:
        wait_until_held_back(broker, here)
        set_config(cluster, ResourceType.BROKER, "", ALTER_LOG_DIRS_RATE, str(UNLIMITED))
        wait_until_moved(broker, "slow", there)
        assert values(fetch(broker, "slow", 5 + COUNT)) == [b"last"]


def test_a_move_is_cancelled_by_one_to_where_the_replica_is(tmp_path: Path) -> None:
    with slow_cluster(tmp_path) as cluster, RawClient(cluster.bootstrap_servers) as broker:
        here, there = held_back(cluster, broker, tmp_path)
        # Once more is nothing new.
        assert alter(broker, "slow", tmp_path / there) == ErrorCode.NONE
        assert len(replicas(broker, "slow")) == 2
        assert alter(broker, "slow", tmp_path / here) == ErrorCode.NONE
        assert replicas(broker, "slow") == [Replica(here, False, 0)]
        (left,) = names_in(tmp_path / there, "slow")
        assert left.endswith("-delete")
        set_config(cluster, ResourceType.BROKER, "", ALTER_LOG_DIRS_RATE, str(UNLIMITED))
        assert alter(broker, "slow", tmp_path / there) == ErrorCode.NONE
        wait_until_moved(broker, "slow", there)
