"""The findings of `kvorum log check` where no segment of a log is left."""

from pathlib import Path
from typing import Final

import pytest

from kvorum.inspection.log_check.check import check_paths
from kvorum.inspection.log_check.findings import Findings, Rule, Verdict
from kvorum.inspection.log_check.partition_check import check_partition
from kvorum.storage.log.epochs import LEADER_EPOCH_CHECKPOINT
from kvorum.storage.metadata_log.flushed_offset import FLUSHED_OFFSET_FILE
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kvorum.storage.small_files.offset_checkpoint_file import (
    HIGH_WATERMARK_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from kvorum.wire.checksums import crc32c

PARTITION: Final = "orders-0"


def damaged_rules(path: Path) -> list[Rule]:
    return [finding.rule for finding in check_paths([path]).findings if finding.is_damage]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the directory of a log whose files are gone; its checkpoint names offset 0."""
    directory = tmp_path / PARTITION
    directory.mkdir()
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    write_high_watermark(tmp_path, 0)
    return directory


def write_high_watermark(node: Path, offset: int) -> None:
    (node / HIGH_WATERMARK_CHECKPOINT).write_text(f"0\n1\norders 0 {offset}\n")


def test_a_new_log_whose_first_segment_is_not_made_yet_is_sound(log: Path) -> None:
    assert check_paths([log.parent]).verdict is Verdict.SOUND


def test_records_that_were_committed_are_missed_where_no_segment_is_left(log: Path) -> None:
    write_high_watermark(log.parent, 7)
    assert damaged_rules(log.parent) == [Rule.OFFSET_CHECKPOINT]


def test_records_of_a_stored_epoch_are_missed_where_no_segment_is_left(log: Path) -> None:
    (log / LEADER_EPOCH_CHECKPOINT).write_text("0\n2\n0 0\n1 7\n")
    assert damaged_rules(log.parent) == [Rule.LOG_END]


def flushed(offset: int) -> bytes:
    line = b"0 %020d" % offset
    return b"%s %08x\n" % (line, crc32c(line))


@pytest.mark.parametrize(("offset", "expected"), [(0, []), (7, [Rule.LOG_END])])
def test_durable_records_are_missed_where_a_metadata_log_has_no_segment(
    tmp_path: Path, offset: int, expected: list[Rule]
) -> None:
    directory = tmp_path / METADATA_LOG_DIRECTORY
    directory.mkdir()
    (directory / FLUSHED_OFFSET_FILE).write_bytes(flushed(offset))
    assert damaged_rules(directory) == expected


def test_nothing_is_missed_in_a_directory_that_is_gone(log: Path) -> None:
    write_high_watermark(log.parent, 7)
    log.rmdir()
    findings = Findings()
    assert check_partition(log, findings).end_offset is None
    assert not any(finding.is_damage for finding in findings.all)


def stopped_in_good_order(node: Path, offsets: dict[str, int]) -> None:
    lines = [f"{topic} 0 {offset}\n" for topic, offset in offsets.items()]
    (node / RECOVERY_POINT_CHECKPOINT).write_text(f"0\n{len(lines)}\n{''.join(lines)}")
    (node / CLEAN_SHUTDOWN_FILE).write_bytes(b"")


def missed(node: Path) -> list[str]:
    report = check_paths([node])
    assert report.verdict is Verdict.SOUND
    return [one.problem for one in report.findings if one.file.name == RECOVERY_POINT_CHECKPOINT]


def test_a_log_whose_directory_is_gone_has_a_note_after_a_stop_in_good_order(log: Path) -> None:
    stopped_in_good_order(log.parent, {"orders": 0, "payments": 7})
    problem = "there is no directory of logs that had records, 1 in all: payments-0"
    assert missed(log.parent) == [problem]


def test_one_note_names_the_first_logs_whose_directories_are_gone(log: Path) -> None:
    gone = [f"topic{number:02}" for number in range(12)]
    stopped_in_good_order(log.parent, {"orders": 0, **dict.fromkeys(gone, 7)})
    names = ", ".join(f"{topic}-0" for topic in gone[:10])
    problem = f"there is no directory of logs that had records, 12 in all: {names}, …"
    assert missed(log.parent) == [problem]


@pytest.mark.parametrize("suffix", ["-delete", "-future", "-stray"])
def test_a_log_that_moves_or_leaves_is_not_missed(log: Path, suffix: str) -> None:
    stopped_in_good_order(log.parent, {"orders": 0, "payments": 7, "empty": 0})
    (log.parent / f"payments-0.{'0' * 32}{suffix}").mkdir()
    assert missed(log.parent) == []


def test_a_log_is_not_missed_where_the_node_was_not_stopped_in_good_order(log: Path) -> None:
    stopped_in_good_order(log.parent, {"orders": 0, "payments": 7})
    (log.parent / CLEAN_SHUTDOWN_FILE).unlink()
    assert missed(log.parent) == []
