"""The target voters (KIP-642) in quorums that real controllers are part of.

A real controller knows nothing of target voters: it replays the record, keeps it through its
snapshots and restarts, and is added and removed like any other. While it leads, one of our
controllers acts on them in its place, whether it is a voter or not.

Stock clients say which voters they want: Java's admin client, kafka-python, Kafka's tools;
confluent-kafka's admin client has no call for reassignments. kafka-metadata-quorum describes a
quorum of ours that is being reassigned: the response of DescribeQuorum then has a tagged field that
Kafka's schema does not know.
"""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from tests.interop.metadata_shell import SHELL_LEVEL, Shell
from tests.interop.mixed_quorum import (
    CLUSTER_WIDE,
    KEY,
    are_observing,
    assert_nothing_wrong,
    formed,
    is_reached,
    whole_log,
)
from tests.interop.quorum_tools import run_ours, run_real, without_progress
from tests.support.clients.driver import KafkaPythonDriver
from tests.support.kafka.java import Java, ToolResult, ToolRunner
from tests.support.metrics_scrape import reassignment_figures
from tests.support.node import COMBINED, Node
from tests.support.node_process import run_kvorum
from tests.support.played_broker import try_to_register
from tests.support.ports import free_ports, listens
from tests.support.quorum.quorum import Described, MakeQuorum, Quorum, registered_controllers
from tests.support.quorum.topic_writers import Writers, alter, kill_the_leader_of_each_step, want
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.metadata.record_frame import decode_record
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.quorum_reassignment_tag import reassignment_in
from kvorum.wire.records import read_batches

pytestmark = pytest.mark.slow
UNKNOWN_TARGET = 3
OURS, REAL = (1, 4, 6), (2, 3, 5)
STEP = re.compile(r"Reassigning the quorum in place of its leader .*step=\"(\w+ voter \d+|clear)")


@pytest.fixture
def controllers(tmp_path: Path, java: Java) -> Iterator[Quorum]:
    """Controllers of both kinds, formatted; node 2, a real one, is a quorum of its own."""
    with formed(tmp_path, java, ours=OURS, real=REAL, first=2) as made:
        yield made


def want_by_tag(controllers: Quorum, value: str) -> None:
    """Write the target voters as a configuration, which every leader accepts."""
    config = IncrementalAlterConfigsRequest.AlterableConfig(KEY, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(*CLUSTER_WIDE, [config])

    def is_written(found: Described) -> bool:
        with RawClient(controllers.members[found.leader_id].address) as client:
            response = client.ask(
                IncrementalAlterConfigsRequest([resource]), IncrementalAlterConfigsResponse, 1
            )
        return response.responses[0].error_code == ErrorCode.NONE

    controllers.until("the target voters are written", is_written)


def steps_of(controllers: Quorum) -> Counter[str]:
    """Return the steps that ours have taken in place of a leader."""
    return Counter(
        step for node_id in OURS for step in STEP.findall(controllers.members[node_id].log_text)
    )


def test_a_real_leader_is_led_through_every_step_and_out_of_the_quorum(controllers: Quorum) -> None:
    controllers.start(2)
    controllers.until("node 2 leads", lambda found: found.leader_id == 2)
    (metrics_port,) = free_ports(1)
    controllers.configure({"kvorum.metrics.listener": f"127.0.0.1:{metrics_port}"}, 1)
    controllers.start(1, 4, 5)
    are_observing(controllers, 1, 4, 5)
    want_by_tag(controllers, "1,2,3")
    # Our controllers show more than a real leader can: node 3 has not started.
    controllers.until(
        "the reassignment_figures of ours tell of the target that has not started",
        lambda _: reassignment_figures(metrics_port).get("blocked_reason") == UNKNOWN_TARGET,
    )
    assert reassignment_figures(metrics_port) == {
        "adding_voters": 1, "removing_voters": 0, "blocked_reason": UNKNOWN_TARGET,
    }  # fmt: skip
    controllers.members[1].process.wait_for_line("target 3 does not fetch from the leader")
    controllers.start(3)
    is_reached(controllers, (1, 2, 3))
    servers = ",".join(controllers.members[node_id].address for node_id in (1, 2, 3, 4, 5))
    tool = ("quorum", "--bootstrap-controller", servers, "reassign")
    shown = run_kvorum(*tool, "--voters", "1,4,5", "--wait")
    assert "the target voters are recorded as a configuration, and not checked" in shown
    assert "the leader, node 2, is not one of kvorum's" in shown
    assert shown.endswith("The quorum has the target voters.\n")
    is_reached(controllers, (1, 4, 5))
    assert run_kvorum(*tool, "--status") == "No reassignment of the quorum is under way.\n"
    steps = steps_of(controllers)
    # Each once: two that acted for the same leader would have taken some twice.
    changes = ("add voter 1", "add voter 3", "add voter 4", "add voter 5", "remove voter 3")
    assert {step: steps[step] for step in changes} == dict.fromkeys(changes, 1), steps
    assert steps["remove voter 2"] == 1, steps
    for node_id in (2, 3, 5):
        controllers.members[node_id].stop()
        assert_nothing_wrong(controllers.members[node_id])


def test_no_acknowledged_change_is_lost_when_the_leader_of_each_step_is_killed(
    controllers: Quorum,
) -> None:
    controllers.start(2)
    controllers.until("node 2 leads", lambda found: found.leader_id == 2)
    controllers.start(1, 3, 4, 5, 6)
    are_observing(controllers, 1, 3, 4, 5, 6)
    want_by_tag(controllers, "1,2,3")
    is_reached(controllers, (1, 2, 3))
    addresses = [one.address for one in controllers.members.values()]
    controllers.until(
        "a broker is registered",
        lambda found: bool(try_to_register(controllers.members[found.leader_id].address)),
    )
    with Writers(addresses, count=1, seed=1) as writers:
        writers.wait_for_progress()
        want_by_tag(controllers, "4,5,6")
        killed = kill_the_leader_of_each_step(controllers, (4, 5, 6))
        is_reached(controllers, (4, 5, 6))
        writers.wait_for_progress()
    # A leader of ours may be done with a step before it is seen that there was one.
    assert len(killed) >= 4, killed
    assert {*killed} & {*REAL}, killed
    end_offset = controllers.until(
        "every controller has all that is committed", have_all
    ).high_watermark
    for one in controllers.members.values():
        one.stop()
    for node_id, one in controllers.members.items():
        topics = topics_in(one, end_offset)
        assert writers.acknowledged.keys() <= topics.keys() <= writers.wished, node_id
        assert max(topics.values()) == 1, node_id
    for node_id in REAL:
        assert_nothing_wrong(controllers.members[node_id])


def have_all(found: Described) -> bool:
    """Tell whether every controller has everything that is committed."""
    states = {one.replica_id: one for one in (*found.current_voters, *found.observers)}
    return states.keys() == {*OURS, *REAL} and all(
        one.log_end_offset >= found.high_watermark > 0 for one in states.values()
    )


def topics_in(one: Node, end_offset: int) -> Counter[str]:
    """Return how often each topic is created in a stopped controller's log."""
    found = Counter[str]()
    for batch in read_batches(whole_log(one)):
        if batch.is_control or batch.base_offset >= end_offset:
            continue
        for record in batch.records():
            message, _ = decode_record(record.value or b"")
            if isinstance(message, TopicRecord):
                found[message.name] += 1
    return found


TWO_REAL: Collection[int] = (2, 3)


@pytest.fixture
def mixed_controllers(tmp_path: Path, java: Java) -> Iterator[Quorum]:
    """Controllers of both kinds: node 1 is a quorum of its own, the others are observers."""
    with formed(tmp_path, java, ours=(1, 4), real=TWO_REAL, first=1, options=SHELL_LEVEL) as made:
        yield made


def test_target_voters_outlive_real_leaders_snapshots_and_restarts(
    mixed_controllers: Quorum, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    mixed_controllers.start(1, 2, 3, 4)
    are_observing(mixed_controllers, 2, 3, 4)
    want(mixed_controllers, (1, 2, 3))
    is_reached(mixed_controllers, (1, 2, 3))
    # The quorum waits for a target, which is down, and the target voters stay.
    mixed_controllers.members[4].stop()
    want(mixed_controllers, (1, 3, 4))
    mixed_controllers.members[1].stop()
    found = mixed_controllers.until("a real one leads", lambda found: found.leader_id in TWO_REAL)
    leader = mixed_controllers.members[found.leader_id]
    described_by_tool = kafka_tools.run(
        "kafka-configs",
        "--bootstrap-controller",
        leader.address,
        "--entity-type",
        "brokers",
        "--entity-default",
        "--describe",
    )
    assert KEY in described_by_tool.stdout, described_by_tool
    for node_id in TWO_REAL:
        mixed_controllers.members[node_id].stop()
    assert f"{KEY}:" in Shell(kafka_tools, tmp_path).tree(whole_log(leader))
    mixed_controllers.start(2, 3)
    mixed_controllers.until(
        "a real one leads again",
        lambda found: found.leader_id in TWO_REAL and found.high_watermark > 0,
    )
    mixed_controllers.start(1, 4)
    is_reached(mixed_controllers, (1, 3, 4))
    for node_id in TWO_REAL:
        mixed_controllers.members[node_id].stop()
        assert_nothing_wrong(mixed_controllers.members[node_id])


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
