"""Kafka's tools move replicas of our brokers, between directories and brokers, with throttles."""

import json
from pathlib import Path

import pytest
from tests.support.kafka.java import ToolRunner
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
from tests.support.waiting import wait_for

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
    """Return what the metadata has of a resource's configuration."""
    return dict(cluster.node(CONTROLLER).shared_server.loader.published.configs.of(kind, name))


def test_a_replica_moves_to_another_log_directory(kafka_tools: ToolRunner, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    with two_directories(folder) as cluster, RawClient(cluster.bootstrap_servers) as broker:
        there = the_other(hosted(cluster, broker, "moving"))
        reassignment = Reassignment(kafka_tools, cluster.bootstrap_servers, tmp_path / "plan.json")
        reassignment.plan("moving", [NODE], [str(folder / there)])
        throttle = ("--replica-alter-log-dirs-throttle", str(RATE))
        said = reassignment.run("--execute", *throttle)
        assert f"Successfully started moving log directory to {folder / there} for replica" in said
        limits = settings(cluster, ResourceType.BROKER, str(NODE))
        assert limits[ALTER_LOG_DIRS_RATE] == str(RATE)
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
        servers = cluster.bootstrap_servers
        reassignment = Reassignment(kafka_tools, servers, tmp_path / "plan.json")
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
