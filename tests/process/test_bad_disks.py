"""Bad starts, damaged logs, full and lost disks: one clear line, and all is kept.

Most mistakes in a start are in node/test_start_errors.py, every kind of damage is in
unit/storage/metadata_log; here is what an operator sees of them.
"""

import re
from pathlib import Path
from typing import Final

import pytest
from tests.process.bystander import WORK_MAX_S, Bystander
from tests.process.failed_nodes import LONG, assert_one_line, assert_stopped_loudly, refused
from tests.support.fixtures import DISK_BYTES, Report, mount
from tests.support.lost_log_dir import (
    TOPICS,
    described,
    lose_the_disk,
    producing,
    read_all,
    two_directories,
    wait_until_described,
    wait_until_others_go_on,
)
from tests.support.node import Node
from tests.support.node_process import kvorum_server
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch
from tests.support.resources import Memory, wait_until_quiet
from tests.support.topics import create, read_topics, wait_until_written

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import read_batches

NAMES = [f"topic-{number}" for number in range(8)]
TOPICS_EACH = 20
REFUSALS_EACH: Final = 500
MIB: Final = 2**20
GROWTH_MAX: Final = 24 * MIB
LINES_MAX: Final = 50
IDLE_S: Final = 2.0


def test_a_start_that_fails_is_one_line_and_changes_nothing(node: Node) -> None:
    node.configure({"node.id": "7"})
    line = refused(node)
    assert "7" in line
    assert "node id" in line


def test_a_directory_that_a_running_node_uses(node: Node) -> None:
    with node.process:
        assert create(node.broker, "before") == [ErrorCode.NONE]
        node.configure({"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"})
        ended = kvorum_server(node.properties).run_to_end()
        assert_one_line(ended)
        assert f"in {node.data}" in ended.last_line
        assert "lock" in ended.last_line
        assert create(node.broker, "after") == [ErrorCode.NONE]
        assert read_topics(node.broker).keys() == {"before", "after"}


def test_unknown_keys_are_named_and_ignored(node: Node) -> None:
    node.configure({"no.such.key": "1", "nor.this": "x"})
    with node.process as process:
        line = process.wait_for_line("Unknown configuration keys")
        assert line.count("no.such.key") == line.count("nor.this") == 1
        assert create(node.broker, "topic") == [ErrorCode.NONE]


@pytest.fixture
def used(node: Node) -> Node:
    with node.process as process:
        for name in NAMES:
            assert create(node.broker, name) == [ErrorCode.NONE]
        process.kill()
    return node


def positions(file: Path) -> list[int]:
    return [batch.position for batch in read_batches(file.read_bytes())]


def flip(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 0x10
    file.write_bytes(data)


def test_damage_stops_the_node(used: Node) -> None:
    starts = positions(used.first_segment)
    flip(used.first_segment, starts[len(starts) // 2] + 70)
    line = refused(used)
    assert str(used.first_segment) in line
    assert re.search(r"offset \d+", line), "an operator wants to know where"
    assert re.search(r"Stop the node, keep a copy of", line), "and what to do"


def test_a_torn_tail_is_cut_off_and_reported(used: Node) -> None:
    data = used.first_segment.read_bytes()
    last = data[positions(used.first_segment)[-1] :]
    tail = last[: len(last) // 2]
    used.first_segment.write_bytes(data + tail)
    with used.process as process:
        line = process.wait_for_line(str(used.first_segment))
        assert re.search(rf"\b{len(tail)}\b", line), line
        assert read_topics(used.broker).keys() == set(NAMES)
        assert create(used.broker, "after") == [ErrorCode.NONE]
        process.kill()
    with used.process:
        assert read_topics(used.broker).keys() == {*NAMES, "after"}


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "kvorum-flushed-offset"])
def test_small_files_that_are_gone_are_rebuilt(used: Node, name: str) -> None:
    file = used.metadata_log / name
    file.unlink()
    with used.process:
        assert read_topics(used.broker).keys() == set(NAMES)
        assert create(used.broker, "after") == [ErrorCode.NONE]
    assert file.exists()


def fill(node: Node) -> set[str]:
    """Create topics until the node gives up, and return those that it acknowledged."""
    acknowledged: set[str] = set()
    for number in range(200):
        names = [f"{LONG}-{number}-{index}" for index in range(TOPICS_EACH)]
        try:
            codes = create(node.broker, *names)
        except (OSError, AssertionError):
            return acknowledged
        if set(codes) != {ErrorCode.NONE}:
            assert ErrorCode.NONE not in codes
            return acknowledged
        acknowledged.update(names)
    raise AssertionError("the disk was never full")


def test_a_full_disk(node_on_disk: Node, disk: Path) -> None:
    node = node_on_disk
    with node.process as process:
        acknowledged = fill(node)
        assert_stopped_loudly(process.wait(), node.data, "No space left on device")
    assert acknowledged
    # Still full: it may not start, or start and stop again, but never with success.
    assert_stopped_loudly(node.process.run_to_end(), node.data, "No space left on device")
    # The broker makes a log for each topic that it had no room for.
    mount(disk, "-o", f"remount,size={16 * DISK_BYTES}")
    with node.process:
        assert read_topics(node.broker).keys() >= acknowledged
        assert create(node.broker, "after") == [ErrorCode.NONE]


def test_a_limit_on_the_size_of_files(node: Node) -> None:
    """The same without root: the system refuses to let a file grow beyond a limit."""
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("only Linux can limit another process")
    with node.process as process:
        assert create(node.broker, "before") == [ErrorCode.NONE]
        limit = node.first_segment.stat().st_size + 20_000
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        acknowledged = fill(node)
        assert_stopped_loudly(process.wait(), node.data, "File too large")
    with node.process:
        assert read_topics(node.broker).keys() >= acknowledged | {"before"}
        assert create(node.broker, "after") == [ErrorCode.NONE]


def test_a_disk_that_may_not_be_written(node_on_disk: Node, disk: Path) -> None:
    node = node_on_disk
    with node.process:
        assert create(node.broker, "before") == [ErrorCode.NONE]
    mount(disk, "-o", "remount,ro")
    ended = node.process.run_to_end()
    assert_one_line(ended)
    assert_stopped_loudly(ended, node.data, "Read-only file system")
    mount(disk, "-o", "remount,rw")
    with node.process:
        assert read_topics(node.broker).keys() == {"before"}


@pytest.mark.slow
def test_a_directory_is_lost_while_producers_run(tmp_path: Path, disk: Path) -> None:
    node = two_directories(tmp_path / "node", disk)
    with node.process:
        lose_the_disk(node, disk)


@pytest.mark.slow
def test_producers_that_never_stop(report: Report, tmp_path: Path, disk: Path) -> None:
    node = two_directories(tmp_path / "node", disk)
    with node.process as process:
        assert create(node.broker, *TOPICS) == [ErrorCode.NONE] * len(TOPICS)
        wait_until_described(node)
        lost, kept = described(node)[str(disk)][1], described(node)[str(node.data)][1]
        memory = Memory(process.pid)
        before = memory.resident_bytes()
        with Bystander(node.broker, process.pid) as bystander, producing(node.broker) as producers:
            process.wait_until(
                lambda: all(producers[one].refusal_count >= REFUSALS_EACH for one in lost),
                f"each producer at the full disk was refused {REFUSALS_EACH} times",
            )
            wait_until_others_go_on(producers, kept)
        grown = memory.peak_bytes() - before
        busy = wait_until_quiet(process.pid, IDLE_S)
        lines = process.lines()
        assert process.terminate().exit_code == 0
    report(
        f"{sum(producers[one].refusal_count for one in lost)} refusals at a full disk: the node "
        f"grew from {before / MIB:.0f} MiB by {grown / MIB:.1f} MiB, said {len(lines)} lines, and "
        f"used {busy * 100:.1f} % of a processor afterwards; the slowest of "
        f"{bystander.answer_count} answers to another client took "
        f"{bystander.slowest_s * 1000:.0f} ms"
    )
    for topic in lost:
        assert set(producers[topic].codes) == {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
    assert [producers[topic].refusal_count for topic in kept] == [0, 0]
    assert grown < GROWTH_MAX
    assert bystander.most_work_s < WORK_MAX_S
    assert len(lines) < LINES_MAX, lines[:LINES_MAX]
    mount(disk, "-o", f"remount,size={16 * DISK_BYTES}")
    with node.process, RawClient(node.broker) as client:
        wait_until_written(node.broker, min(lost), batch(b"after"))
        for topic, producer in producers.items():
            found = [value for value in read_all(client, topic) if value != b"after"]
            # The last batch may have been written before the disk refused something else.
            assert found[: len(producer.acknowledged)] == producer.acknowledged
            assert len(found) <= len(producer.acknowledged) + 1


@pytest.mark.slow
def test_the_only_log_directory_is_full(tmp_path: Path, disk: Path) -> None:
    """The node ends, as Kafka does, though its metadata log is on another disk."""
    node = two_directories(tmp_path / "node", disk, has_records_in_both=False)
    with node.process as process:
        assert create(node.broker, *TOPICS) == [ErrorCode.NONE] * len(TOPICS)
        process.wait_until(
            lambda: described(node)[str(disk)][1] == {*TOPICS}, "all topics are on the disk"
        )
        with producing(node.broker) as producers:
            assert_stopped_loudly(process.wait(), disk, "")
    for producer in producers.values():
        assert producer.acknowledged
        assert set(producer.codes) <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
    mount(disk, "-o", f"remount,size={16 * DISK_BYTES}")
    with node.process, RawClient(node.broker) as client:
        wait_until_written(node.broker, TOPICS[0], batch(b"after"))
        for topic, producer in producers.items():
            found = [value for value in read_all(client, topic) if value != b"after"]
            assert found[: len(producer.acknowledged)] == producer.acknowledged
