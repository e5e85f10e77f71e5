"""Disks of a quorum that are full, or lost: the others go on, and the node comes back."""

import resource
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from tests.process.failed_nodes import LONG
from tests.process.quorum.unharmed_quorum import (
    assert_kafka_reads_the_same,
    assert_same_batches,
    create_at_leader,
    wait_until_it_is_a_voter,
)
from tests.support.fixtures import DISK_BYTES, mount
from tests.support.kafka.java import ToolRunner
from tests.support.node import Node
from tests.support.node_process import KVORUM, Ended
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.quorum.topic_writers import Writers
from tests.support.waiting import PATIENCE_S

from kvorum.wire.uuid_text import uuid_to_text

TOPICS_EACH = 100
ROOM_BYTES = 20_000
ROLES = pytest.mark.parametrize("leads", [True, False], ids=["the leader's", "a follower's"])


@pytest.fixture
def quorum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProxiedQuorum]:
    """Three controllers that write, but for bytecode: half of it would harm the next process."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with ProxiedQuorum(tmp_path, 3, is_dynamic=True) as running:
        register_broker(running)
        # Two of them commit without the third, which may not even have its files yet.
        running.wait_until_settled()
        yield running


def _writers(quorum: ProxiedQuorum) -> Writers:
    return Writers([member.address for member in quorum.members.values()], count=2, seed=1)


def _chosen(quorum: ProxiedQuorum, *, leads: bool) -> Node:
    leader = quorum.leader()
    others = [member for member in quorum.members.values() if member is not leader]
    return leader if leads else others[0]


def _fill(quorum: ProxiedQuorum, member: Node) -> Ended:
    """Create large topics until a member has no room for more, and return how it ended."""
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(quorum.wait_for_end, member.node_id)
        while not ending.done():
            create_at_leader(quorum, [f"{LONG}-{uuid4().hex}" for _ in range(TOPICS_EACH)])
        return ending.result()


def _assert_stopped_for(ended: Ended, member: Node, words: str) -> None:
    """It ended with an error code, and a last line that says what failed, and where."""
    assert ended.exit_code == 1
    assert ended.last_line.startswith("kvorum server: ")
    assert words in ended.last_line
    assert str(member.data) in ended.last_line
    assert "Traceback" not in "\n".join(ended.lines)


def _assert_all_is_there(quorum: ProxiedQuorum, kafka_tools: ToolRunner, writers: Writers) -> None:
    end_offset = quorum.wait_until_settled()
    quorum.kill_all_at_once()
    members = list(quorum.members.values())
    assert_same_batches(members, end_offset=end_offset)
    assert_kafka_reads_the_same(kafka_tools, members, writers, end_offset=end_offset, others=LONG)


@ROLES
def test_no_file_may_grow(quorum: ProxiedQuorum, kafka_tools: ToolRunner, *, leads: bool) -> None:
    """The system refuses one member what the others have: room for their logs."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("only Linux can limit another process")
    with _writers(quorum) as writers:
        writers.wait_for_progress()
        member = _chosen(quorum, leads=leads)
        limit = member.first_segment.stat().st_size + ROOM_BYTES
        resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        _assert_stopped_for(_fill(quorum, member), member, "File too large")
        writers.wait_for_progress()
        quorum.start(member.node_id)
        writers.wait_for_progress()
    _assert_all_is_there(quorum, kafka_tools, writers)


@pytest.mark.slow
def test_a_small_disk(tmp_path: Path, disk: Path, kafka_tools: ToolRunner) -> None:
    """One member has a disk of its own, which is full before those of the others are."""
    data = tmp_path / "2" / "data"
    data.parent.mkdir()
    data.symlink_to(disk)
    with ProxiedQuorum(tmp_path, 3, is_dynamic=True) as quorum:
        register_broker(quorum)
        member = quorum.members[2]
        with _writers(quorum) as writers:
            _assert_stopped_for(_fill(quorum, member), member, "No space left on device")
            writers.wait_for_progress()
            quorum.start(member.node_id)
            _assert_stopped_for(_fill(quorum, member), member, "No space left on device")
            mount(disk, "-o", f"remount,size={20 * DISK_BYTES}")
            quorum.start(member.node_id)
            writers.wait_for_progress()
        _assert_all_is_there(quorum, kafka_tools, writers)


def _run_tool(quorum: ProxiedQuorum, replaced: Node, *arguments: str) -> None:
    """Run ``kvorum quorum`` with the others, again where the leader says that it was too early."""
    others = [member for member in quorum.members.values() if member is not replaced]
    addresses = ",".join(member.address for member in others)
    command = [*KVORUM, "quorum", "--bootstrap-controller", addresses, *arguments]

    def run() -> bool:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        if "TimeoutException" in done.stderr + done.stdout:
            return False
        assert done.returncode == 0, done.stdout + done.stderr
        return True

    quorum.wait_for(run, f"the leader gets to {arguments}")


def _is_caught_up(quorum: ProxiedQuorum, member: Node) -> bool:
    answer = quorum.described()
    if answer is None:
        return False
    ends = [
        one.log_end_offset
        for one in answer.observers
        if (one.replica_id, one.replica_directory_id) == (member.node_id, member.directory_id)
    ]
    return ends >= [answer.high_watermark]


@pytest.mark.slow
@ROLES
def test_a_lost_disk_is_replaced(
    quorum: ProxiedQuorum, kafka_tools: ToolRunner, *, leads: bool
) -> None:
    """As KIP-853 describes it: the old voter is removed, and the new directory added."""
    with _writers(quorum) as writers:
        writers.wait_for_progress()
        member = _chosen(quorum, leads=leads)
        quorum.kill(member.node_id)
        old = member.directory_id
        quorum.wipe(member.node_id)
        assert member.directory_id != old
        writers.wait_for_progress()
        quorum.start(member.node_id)
        identity = ["--controller-id", str(member.node_id)]
        identity += ["--controller-directory-id", uuid_to_text(old)]
        _run_tool(quorum, member, "remove-controller", *identity)
        quorum.wait_for(lambda: _is_caught_up(quorum, member), "the new disk has caught up")
        _run_tool(quorum, member, "--command-config", str(member.properties), "add-controller")
        wait_until_it_is_a_voter(quorum, member, writers)
        _assert_it_counts(quorum, member, writers)
    _assert_all_is_there(quorum, kafka_tools, writers)


@pytest.mark.slow
def test_a_lost_disk_joins_by_itself(tmp_path: Path, kafka_tools: ToolRunner) -> None:
    settings = {"controller.quorum.auto.join.enable": "true"}
    with ProxiedQuorum(tmp_path, 3, is_dynamic=True, settings=settings) as quorum:
        register_broker(quorum)
        with _writers(quorum) as writers:
            member = _chosen(quorum, leads=True)
            quorum.kill(member.node_id)
            quorum.wipe(member.node_id)
            quorum.start(member.node_id)
            wait_until_it_is_a_voter(quorum, member, writers)
            _assert_it_counts(quorum, member, writers)
        _assert_all_is_there(quorum, kafka_tools, writers)


def _assert_it_counts(quorum: ProxiedQuorum, member: Node, writers: Writers) -> None:
    """With one of the others gone nothing is committed but by this one."""
    other = next(one for one in quorum.members.values() if one is not member)
    quorum.kill(other.node_id)
    writers.wait_for_progress()
    quorum.start(other.node_id)
