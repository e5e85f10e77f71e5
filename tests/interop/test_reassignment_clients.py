"""Stock clients say which voters they want (KIP-642): Java's admin client, kafka-python, tools.

confluent-kafka's admin client has no call for reassignments.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from tests.interop.quorum_tools import run_ours, run_real, without_progress
from tests.support.clients.driver import KafkaPythonDriver
from tests.support.kafka.java import Java, ToolResult, ToolRunner
from tests.support.node import COMBINED
from tests.support.ports import listens
from tests.support.quorum.quorum import Described, MakeQuorum, registered_controllers
from tests.support.quorum.topic_writers import alter
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.quorum_reassignment_tag import reassignment_in

pytestmark = pytest.mark.slow
METADATA: Final = "__cluster_metadata"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=3, brokers=1) as running:
        running.wait_for_leader()
        yield running


class JavaAdmin:
    """Kafka's own admin client, one command after the other."""

    def __init__(self, java: Java, servers: str) -> None:
        command = java.program("QuorumReassignment", servers)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, command: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE_S)


def voters_are(cluster: Cluster, *node_ids: int) -> Callable[[], bool]:
    def find() -> bool:
        leader_id = cluster.leader_id
        if leader_id is None:
            return False
        return cluster.node(leader_id).shared_server.raft.voter_ids() == frozenset(node_ids)

    return find


def a_voter_to_spare(cluster: Cluster) -> int:
    """Return a controller that does not lead."""
    leader_id = cluster.wait_for_leader()
    return next(node_id for node_id in (1, 2, 3) if node_id != leader_id)


def test_java_starts_watches_and_cancels_a_reassignment(java: Java, cluster: Cluster) -> None:
    spare = a_voter_to_spare(cluster)
    rest = [node_id for node_id in (1, 2, 3) if node_id != spare]
    with closing(JavaAdmin(java, cluster.bootstrap_servers)) as ask:
        assert ask("list") == "none"
        assert ask("cancel").startswith("NoReassignmentInProgressException: ")
        assert ask("1,2,77").startswith("InvalidReplicaAssignmentException: Node 77 is neither")
        assert ask(",".join(map(str, rest))) == "done"
        wait_for(voters_are(cluster, *rest), "the voter is removed")
        wait_for(lambda: ask("list") == "none", "the target voters are cleared")
        cluster.kill(spare)
        assert ask("1,2,3") == "done"
        assert ask("1,2,3") == "done"
        assert ask("list") == f"{[*rest, spare]} [{spare}] []"
        assert ask("cancel") == "done"
        assert ask("list") == "none"


def test_kafka_python_starts_watches_and_cancels_a_reassignment(cluster: Cluster) -> None:
    spare = a_voter_to_spare(cluster)
    rest = [node_id for node_id in (1, 2, 3) if node_id != spare]
    with KafkaPythonDriver(cluster.bootstrap_servers) as admin:
        assert admin.reassign(METADATA, [1, 1]) == "InvalidReplicationAssignmentError"
        assert admin.reassign(METADATA, rest) is None
        wait_for(voters_are(cluster, *rest), "the voter is removed")
        wait_for(lambda: admin.reassignment(METADATA) is None, "the target voters are cleared")
        cluster.kill(spare)
        assert admin.reassign(METADATA, [1, 2, 3]) is None
        listed = admin.reassignment(METADATA)
        assert listed is not None
        assert listed["adding_replicas"] == [spare]
        assert admin.reassign(METADATA, None) is None
        assert admin.reassignment(METADATA) is None


def test_kafka_reassign_partitions_lists_and_cancels_but_cannot_start(
    kafka_tools: ToolRunner, cluster: Cluster, tmp_path: Path
) -> None:
    spare = a_voter_to_spare(cluster)
    rest = [node_id for node_id in (1, 2, 3) if node_id != spare]
    with KafkaPythonDriver(cluster.bootstrap_servers) as admin:
        admin.reassign(METADATA, rest)
        wait_for(voters_are(cluster, *rest), "the voter is removed")
        cluster.kill(spare)
        admin.reassign(METADATA, [1, 2, 3])
    partition = {"topic": METADATA, "partition": 0, "replicas": [1, 2, 3]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}), encoding="utf-8")
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    listed = kafka_tools.printed("kafka-reassign-partitions", *server, "--list")
    assert f"{METADATA}-0: replicas: " in listed
    assert f"adding: {spare}." in listed
    planned = ("kafka-reassign-partitions", *server, "--reassignment-json-file", str(plan))
    started = kafka_tools.run(*planned, "--execute")
    assert started.exit_code == 1
    assert "Cannot execute because there is an existing partition assignment" in started.stdout
    cancelled = kafka_tools.printed(*planned, "--cancel", "--preserve-throttles")
    assert cancelled.startswith("Successfully cancelled partition reassignment")
    started = kafka_tools.run(*planned, "--execute")
    assert started.exit_code == 1
    assert started.stdout.startswith("Error: Unknown broker id 1")


STATUS = ("describe", "--status")
REPLICATION = ("describe", "--replication")


@pytest.fixture(name="addresses", scope="module")
def a_blocked_reassignment(
    make_quorum: MakeQuorum,
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Options for the broker and the controller of a quorum whose target is stopped."""
    with make_quorum("kvorum", 2) as quorum:
        quorum.configure({"process.roles": COMBINED}, 1)
        broker = quorum.members[1].broker
        quorum.form([1])
        quorum.start()
        quorum.settled(quorum.keys(1), quorum.keys(2))
        controller = quorum.members[1].controller
        quorum.wait_for(lambda: 2 in registered_controllers(controller), "2 is registered")
        quorum.members[2].stop()
        assert alter(controller, (1, 2))[0] == ErrorCode.NONE

        def is_blocked(found: Described) -> bool:
            told = reassignment_in(found)
            return told is not None and "2" in told.block_text

        quorum.until("the reassignment waits for 2", is_blocked)
        quorum.wait_for(lambda: listens(broker), "the broker listens")
        yield ("--bootstrap-server", broker), ("--bootstrap-controller", controller)


def lines(result: ToolResult) -> list[str]:
    assert result.exit_code == 0, result.stderr
    return without_progress(result).stdout.splitlines()


@pytest.mark.parametrize("index", [0, 1], ids=["broker", "controller"])
def test_the_status_is_what_kafkas_tool_tells_with_the_targets_below(
    addresses: tuple[tuple[str, str], ...], index: int, kafka_tools: ToolRunner
) -> None:
    arguments = (*addresses[index], *STATUS)
    ours, theirs = lines(run_ours(arguments)), lines(run_real(arguments, kafka_tools))
    assert ours[: len(theirs)] == theirs
    assert [line.partition(":")[0] for line in ours[len(theirs) :]] == [
        "TargetVoters",
        "ReassignmentWaitsFor",
    ]
    assert '"id": 2' in ours[len(theirs)]


@pytest.mark.parametrize("index", [0, 1], ids=["broker", "controller"])
def test_the_table_is_what_kafkas_tool_tells_but_for_the_target(
    addresses: tuple[tuple[str, str], ...], index: int, kafka_tools: ToolRunner
) -> None:
    arguments = (*addresses[index], *REPLICATION)
    ours, theirs = lines(run_ours(arguments)), lines(run_real(arguments, kafka_tools))
    assert theirs[1].split()[2] == "Leader"
    # A stopped observer is listed for a while, and then only by us.
    mine, real = [line.split() for line in ours], [line.split() for line in theirs]
    assert [row for row in mine if "Target" not in row] == [
        row for row in real if "Observer" not in row
    ]
    assert [row[0] for row in mine if "Target" in row] == ["2"]
