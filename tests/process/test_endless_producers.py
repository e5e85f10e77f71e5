"""Producers that never stop at a full disk: each gets the code, nothing acknowledged is lost."""

from pathlib import Path
from typing import Final

import pytest
from tests.process.bystander import WORK_MAX_S, Bystander
from tests.process.failed_nodes import assert_stopped_loudly
from tests.support.fixtures import Report
from tests.support.lost_log_dir import (
    TOPICS,
    described,
    producing,
    read_all,
    two_directories,
    wait_until_described,
    wait_until_others_go_on,
)
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch
from tests.support.resources import Memory, wait_until_quiet
from tests.support.small_disk import DISK_BYTES, mount
from tests.support.topics import create, wait_until_written

from kvorum.wire.error_codes import ErrorCode

REFUSALS_EACH: Final = 500
MIB: Final = 2**20
GROWTH_MAX: Final = 24 * MIB
LINES_MAX: Final = 50
IDLE_S: Final = 2.0


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
