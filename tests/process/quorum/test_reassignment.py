"""The quorum goes to the voters that are wanted (KIP-642): processes over TCP and files."""

import os
from pathlib import Path
from random import Random

import pytest
from tests.process.quorum.unharmed_quorum import (
    assert_kafka_reads_the_same,
    assert_no_bugs,
    assert_same_batches,
)
from tests.support.fixtures import Report
from tests.support.kafka.java import ToolRunner
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.quorum.quorum import registered_controllers
from tests.support.quorum.topic_writers import (
    Writers,
    kill_the_leader_of_each_step,
    listed,
    ongoing,
    wait_until_reached,
    want,
)

from kvorum.cli import main

pytestmark = pytest.mark.slow
ROUNDS = int(os.environ.get("KVORUM_REASSIGNMENT_ROUNDS", "2"))
CHANGES, CHANGES_PER_DEATH = 100, 5
ONES, OTHERS = (1, 2, 3), (4, 5, 6)
# Some of the steps shall meet a snapshot being written, or a replica that has to fetch one.
SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "50000",
    "internal.metadata.log.segment.bytes": "70000",
}


def test_no_acknowledged_change_is_lost_when_the_leader_of_each_step_is_killed(
    tmp_path: Path, kafka_tools: ToolRunner, report: Report
) -> None:
    with ProxiedQuorum(tmp_path, 6, is_dynamic=True, observers=OTHERS, settings=SETTINGS) as quorum:
        members = list(quorum.members.values())
        writers = Writers([member.address for member in members], count=2, seed=1)
        register_broker(quorum)
        killed = 0
        with writers:
            writers.wait_for_progress()
            for number in range(ROUNDS):
                wanted = ONES if number % 2 else OTHERS
                want(quorum, wanted)
                killed += len(kill_the_leader_of_each_step(quorum, wanted))
                wait_until_reached(quorum, wanted)
                writers.wait_for_progress()
        end_offset = quorum.wait_until_settled()
        quorum.kill_all_at_once()
        assert_same_batches(members, end_offset=end_offset)
        assert_kafka_reads_the_same(kafka_tools, members, writers, end_offset=end_offset)
        for member in members:
            assert_no_bugs(member)
    report(
        f"{ROUNDS} reassignments of three voters to three others, {killed} leaders killed: "
        f"{len(writers.acknowledged)} topics acknowledged, log end {end_offset}"
    )


def test_a_target_that_is_down_is_waited_for_and_can_be_replaced(tmp_path: Path) -> None:
    with ProxiedQuorum(tmp_path, 5, is_dynamic=True, observers=(4, 5)) as quorum:
        register_broker(quorum)
        want(quorum, (1, 2, 4))
        wait_until_reached(quorum, (1, 2, 4))
        quorum.stop(5)
        want(quorum, (1, 2, 5))
        waiting = listed(quorum)
        assert (waiting.adding_replicas, waiting.removing_replicas) == ([5], [4])
        want(quorum, (1, 2, 3))
        reached = wait_until_reached(quorum, (1, 2, 3))
        assert ongoing(quorum.members[reached.leader_id].address) is None


def test_the_last_of_a_hundred_target_voters_are_reached_while_controllers_die(
    tmp_path: Path, report: Report
) -> None:
    random = Random(642)
    with ProxiedQuorum(tmp_path, 6, is_dynamic=True, observers=OTHERS, settings=SETTINGS) as quorum:
        register_broker(quorum)
        changes = [random.sample(range(1, 7), random.randint(1, 5)) for _ in range(CHANGES - 1)]
        killed = 0
        for number, targets in enumerate([*changes, [2, 4, 6]]):
            want(quorum, targets)
            if number % CHANGES_PER_DEATH == 0:
                victim = quorum.members[random.randint(1, 6)]
                quorum.kill(victim.node_id)
                quorum.start(victim.node_id)
                killed += 1
        reached = wait_until_reached(quorum, (2, 4, 6))
        quorum.wait_until_settled()
        for member in quorum.members.values():
            assert_no_bugs(member)
    report(
        f"{CHANGES} targets, {killed} controllers killed meanwhile: epoch {reached.leader_epoch}"
    )


def test_a_voter_is_replaced_as_it_was_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProxiedQuorum(tmp_path, 2, is_dynamic=True, observers=(2,)) as quorum:
        leader = quorum.leader().address
        quorum.wait_for(lambda: 2 in registered_controllers(leader), "2 has registered")
        command = ["quorum", "--bootstrap-controller", quorum.addresses, "reassign"]
        one, two = (f"{node_id}:{key}" for node_id, key in sorted(quorum.keys(1, 2)))
        assert main([*command, "--voters", "2", "--dry-run"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"1. add voter {two}: 2 voters, 0 may fail",
            "2. hand over the leadership: 2 voters, 0 may fail",
            f"3. remove voter {one}: 1 voter, 0 may fail",
        ]
        assert main([*command, "--voters", "3", "--dry-run"]) == 1
        assert "Node 3 is neither a voter nor a registered controller" in capsys.readouterr().err
        assert main([*command, "--voters", "2", "--wait"]) == 0
        told = capsys.readouterr().out.splitlines()
        assert told[0] == "The quorum is being reassigned to voters 2."
        assert told[-2:] == [f"Voters: {two}", "The quorum has the target voters."]
        assert main([*command, "--status"]) == 0
        assert capsys.readouterr().out == "No reassignment of the quorum is under way.\n"
        assert main([*command, "--cancel"]) == 1
        assert "NoReassignmentInProgressException" in capsys.readouterr().err
