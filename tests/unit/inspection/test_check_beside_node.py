"""The findings of `kvorum log check` where a node changes the files while they are read."""

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kvorum.inspection.image_entries import log_differences, read_through
from kvorum.inspection.log_check import listing, partition_check
from kvorum.inspection.log_check.check import Report, check_paths
from kvorum.inspection.log_check.findings import Findings, Severity
from kvorum.inspection.log_check.listing import REPLACED, PartitionFiles, plan_segments
from kvorum.inspection.log_check.metadata_check import QuorumFacts, load_snapshot
from kvorum.inspection.reading import GONE, TIME_ENTRY
from kvorum.log_files.file_systems import LocalFiles
from kvorum.log_files.find import swap_end_offset
from kvorum.log_files.ranges import FileRange
from kvorum.storage.names import offset_name, snapshot_name
from kvorum.storage.small_files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kvorum.storage.small_files.offset_checkpoint_file import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import (
    BatchOptions,
    ControlRecord,
    ControlRecordType,
    RecordData,
    build_batch,
    encode_control_record,
)
from kvorum.wire.records.compression_type import Compression

PARTITION: Final = "orders-0"
META_PROPERTIES: Final = (
    "version=1\ncluster.id=OLTmUuRNp_I3DZ4mDicTZQ\nnode.id=1\ndirectory.id=j7MVWhzdWf1mVKzvXJ2bBg\n"
)
TIMESTAMP_MS: Final = 1_700_000_000_000
ABORTED_TRANSACTION: Final = struct.Struct(">hqqqq")


def batch(offset: int) -> bytes:
    """Return a batch of one record, whose time grows with the offset."""
    options = BatchOptions(base_offset=offset, partition_leader_epoch=0)
    return build_batch([RecordData(b"value", timestamp=TIMESTAMP_MS + offset)], options)


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


def replace(path: Path, data: bytes) -> None:
    """Put another file into the place of one, as a cleaner does."""
    new = path.with_name(f"{path.name}.swap")
    new.write_bytes(data)
    new.replace(path)


@pytest.fixture
def segments(node: Path) -> list[Path]:
    """Return four segments of two records, each with a time index."""
    paths = [node / PARTITION / offset_name(base, ".log") for base in (0, 2, 4, 6)]
    for path, base in zip(paths, (0, 2, 4, 6), strict=True):
        path.write_bytes(batch(base) + batch(base + 1))
        write_time_index(path, base + 1)
    assert damages(check_paths([node])) == []
    return paths


def write_time_index(segment: Path, offset: int) -> None:
    entry = TIME_ENTRY.pack(TIMESTAMP_MS + offset, offset - int(segment.stem))
    replace(segment.with_suffix(".timeindex"), entry)


def delete(segment: Path) -> None:
    segment.unlink()
    segment.with_suffix(".timeindex").unlink()


@pytest.mark.parametrize("read_segment", [0, 1], ids=["before it is read", "while it is read"])
def test_a_segment_that_is_compacted_is_no_damage(
    node: Path, segments: list[Path], read_segment: int
) -> None:
    def compact() -> None:
        replace(segments[1], batch(2) + batch(5))
        write_time_index(segments[1], 5)
        delete(segments[2])

    assert damages(checked(node, compact, at=segments[read_segment])) == []


def test_a_segment_that_is_deleted_while_it_is_read_is_no_damage(
    node: Path, segments: list[Path]
) -> None:
    assert damages(checked(node, lambda: delete(segments[0]), at=segments[0])) == []


def test_a_log_that_is_truncated_before_its_end_is_read_is_no_damage(
    node: Path, segments: list[Path]
) -> None:
    def truncate() -> None:
        os.truncate(segments[3], len(batch(6)) + 10)

    assert damages(checked(node, truncate, at=segments[0])) == []


class Compared(NamedTuple):
    """The end of a log that `log diff` has read, its damages, and the warnings."""

    end_offset: int
    damages: list[str]
    warnings: list[str]


def compared(node: Path, change: Callable[[], None], *, at: Path) -> Compared:
    """Return what `log diff` reads where a node makes a change at a segment."""
    waiting = [change]
    warnings: list[str] = []
    found: list[str] = []

    def tell(file: Path, _: int) -> None:
        if waiting and file == at:
            waiting.pop()()

    end = read_through(node / PARTITION, warn=warnings.append, tell=tell, damages=found)
    return Compared(end, found, warnings)


@pytest.mark.parametrize("read_segment", [0, 1], ids=["before it is read", "while it is read"])
def test_a_segment_that_is_compacted_is_no_difference(
    node: Path, segments: list[Path], read_segment: int
) -> None:
    def compact() -> None:
        replace(segments[1], batch(2) + batch(5))
        delete(segments[2])

    found = compared(node, compact, at=segments[read_segment])
    assert found.end_offset == 8
    assert found.damages == []
    assert found.warnings == [f"{segments[1]}: {REPLACED}", f"{segments[2]}: {GONE}"]


def test_damage_beside_segments_that_are_replaced_is_a_difference(
    node: Path, segments: list[Path]
) -> None:
    segments[2].write_bytes(batch(4)[:-1] + b"x" + batch(5))
    found = compared(node, lambda: replace(segments[1], batch(3)), at=segments[0])
    assert len(found.damages) == 1


def test_logs_are_not_compared_behind_a_segment_that_is_gone(
    node: Path, segments: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(files: PartitionFiles, findings: Findings) -> list[FileRange]:
        planned = plan_segments(files, findings)
        segments[1].unlink(missing_ok=True)
        return planned

    monkeypatch.setattr(listing, "plan_segments", plan)
    warnings: list[str] = []
    log = node / PARTITION
    assert list(log_differences(log, log, warn=warnings.append)) == []
    assert warnings == [f"the logs are not compared to their ends: {log}: {GONE}"]


def test_damage_beside_segments_that_are_replaced_is_damage(
    node: Path, segments: list[Path]
) -> None:
    segments[2].write_bytes(batch(4)[:-1] + b"x" + batch(5))

    def compact() -> None:
        replace(segments[1], batch(3))

    assert len(damages(checked(node, compact, at=segments[0]))) == 1


def test_a_snapshot_that_is_gone_is_not_taken_for_one_of_nothing(tmp_path: Path) -> None:
    findings = Findings()
    gone = tmp_path / snapshot_name(OffsetAndEpoch(5, 1))
    assert load_snapshot(gone, findings, QuorumFacts()) is None
    assert [finding.severity for finding in findings.all] == [Severity.NOTE]


def test_a_swap_file_that_has_got_its_name_is_one_without_records(tmp_path: Path) -> None:
    assert swap_end_offset(LocalFiles(), str(tmp_path), f"{offset_name(0, '.log')}.swap") == 0


def aborted_batches(offset: int, sequence: int) -> bytes:
    """Return a record of producer 7 in a transaction, and the marker that aborts it."""
    options = BatchOptions(offset, 0, Compression.NONE, 7, 0, sequence, is_transactional=True)
    record = build_batch([RecordData(b"value", timestamp=TIMESTAMP_MS)], options)
    marker = ControlRecord(ControlRecordType.ABORT, EndTxnMarker(0))
    options = options._replace(base_offset=offset + 1, base_sequence=-1, is_control=True)
    return record + build_batch([encode_control_record(marker, TIMESTAMP_MS)], options)


def aborted_entry(offset: int) -> bytes:
    return ABORTED_TRANSACTION.pack(0, 7, offset, offset + 1, offset + 2)


class AbortingNode:
    """A node that goes on once a check has read the index of its last segment."""

    def __init__(self, node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node = node
        self.log = node / PARTITION / offset_name(0, ".log")
        self.index = self.log.with_suffix(".txnindex")
        self.log.write_bytes(aborted_batches(0, 0))
        self.index.write_bytes(aborted_entry(0))
        self._monkeypatch = monkeypatch

    def damages_where(self, *, marks: bytes, entries: bytes) -> list[str]:
        """Return the damage found where the node writes this behind its log and its index."""

        def plan(files: PartitionFiles, findings: Findings) -> list[FileRange]:
            with self.log.open("ab") as log, self.index.open("ab") as index:
                log.write(marks)
                index.write(entries)
            return plan_segments(files, findings)

        self._monkeypatch.setattr(partition_check, "plan_segments", plan)
        return damages(check_paths([self.node]))


@pytest.fixture
def aborting(node: Path, monkeypatch: pytest.MonkeyPatch) -> AbortingNode:
    return AbortingNode(node, monkeypatch)


@pytest.mark.parametrize("later", [b"", aborted_entry(4), aborted_entry(4)[:9]])
def test_a_transaction_that_is_aborted_once_the_index_was_read_is_no_damage(
    aborting: AbortingNode, later: bytes
) -> None:
    entries = aborted_entry(2) + later
    assert aborting.damages_where(marks=aborted_batches(2, 1), entries=entries) == []


@pytest.mark.parametrize("entries", [b"", aborted_entry(4)])
def test_a_transaction_that_is_not_in_the_index_later_either_is_damage(
    aborting: AbortingNode, entries: bytes
) -> None:
    found = aborting.damages_where(marks=aborted_batches(2, 1), entries=entries)
    assert len(found) == 1
    assert "it lacks the transaction that was aborted at offset 3" in found[0]
