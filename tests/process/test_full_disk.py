"""Disks that are full or may not be written: the node says so, and keeps all."""

from pathlib import Path

import pytest
from tests.process.failed_nodes import LONG, assert_one_line, assert_stopped_loudly
from tests.support.node import Node
from tests.support.small_disk import DISK_BYTES, mount
from tests.support.topics import create, read_topics

from kvorum.wire.error_codes import ErrorCode

TOPICS_EACH = 20


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
    still_full = node.process.run_to_end()
    assert_stopped_loudly(still_full, node.data, "No space left on device")
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
