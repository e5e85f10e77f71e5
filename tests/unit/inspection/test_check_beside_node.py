"""The findings of `kvorum log check` where a node changes the files while they are read."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from kvorum.inspection.log_check.check import Report, check_paths
from kvorum.storage.names import offset_name
from kvorum.storage.small_files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kvorum.storage.small_files.offset_checkpoint_file import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from kvorum.wire.records import BatchOptions, RecordData, build_batch

PARTITION: Final = "orders-0"
META_PROPERTIES: Final = (
    "version=1\ncluster.id=OLTmUuRNp_I3DZ4mDicTZQ\nnode.id=1\ndirectory.id=j7MVWhzdWf1mVKzvXJ2bBg\n"
)


def batch(offset: int, count: int = 1) -> bytes:
    """Return a batch of so many records that begins at an offset."""
    options = BatchOptions(base_offset=offset, partition_leader_epoch=0)
    return build_batch([RecordData(b"value") for _ in range(count)], options)


def write_checkpoints(node: Path, offset: int) -> None:
    for name in (HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT):
        start = name == LOG_START_OFFSET_CHECKPOINT
        (node / name).write_text(f"0\n1\norders 0 {0 if start else offset}\n")


def checked(node: Path, change: Callable[[], None], *, at: Path | None = None) -> Report:
    """Return what a check finds if a node makes a change once it reads a log, or that segment."""
    waiting = [change]

    def tell(file: Path, _: int) -> None:
        if waiting and at in {None, file}:
            waiting.pop()()

    report = check_paths([node], tell=tell)
    assert not waiting
    return report


def damages(report: Report) -> list[str]:
    return [finding.text for finding in report.findings if finding.is_damage]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Return the log directory of a broker whose one log ends at offset 2."""
    (tmp_path / PARTITION).mkdir()
    (tmp_path / "meta.properties").write_text(META_PROPERTIES)
    (tmp_path / PARTITION / offset_name(0, ".log")).write_bytes(batch(0) + batch(1))
    write_checkpoints(tmp_path, 2)
    return tmp_path


def append(node: Path) -> None:
    with (node / PARTITION / offset_name(0, ".log")).open("ab") as log:
        log.write(batch(2))


def test_checkpoints_that_are_written_after_the_log_was_read_are_no_damage(node: Path) -> None:
    def go_on() -> None:
        append(node)
        write_checkpoints(node, 3)

    assert damages(checked(node, go_on)) == []


def test_a_node_that_starts_during_the_check_is_no_damage(node: Path) -> None:
    (node / CLEAN_SHUTDOWN_FILE).write_bytes(b"")
    append(node)

    def start() -> None:
        (node / CLEAN_SHUTDOWN_FILE).unlink()

    assert damages(checked(node, start)) == []


def test_a_node_that_stops_during_the_check_is_no_damage(node: Path) -> None:
    def stop() -> None:
        append(node)
        write_checkpoints(node, 3)
        (node / CLEAN_SHUTDOWN_FILE).write_bytes(b"")

    assert damages(checked(node, stop)) == []


def test_a_checkpoint_beyond_the_end_of_the_log_is_damage(node: Path) -> None:
    write_checkpoints(node, 3)
    assert len(damages(check_paths([node]))) == 2
