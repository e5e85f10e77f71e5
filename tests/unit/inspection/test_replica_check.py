"""Replicas that are compared record by record where compaction has left other batches."""

from pathlib import Path

import pytest

from kvorum.inspection.log_check.findings import Findings
from kvorum.inspection.log_check.replica_check import Replica, check_replicas
from kvorum.storage.names import offset_name
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch, read_batches
from kvorum.wire.records.compacted_batch import with_records

VALUES = (b"zero", b"one", b"two", bytes(6_000_000), b"four")


def replica(folder: Path, kept: tuple[int, ...], values: tuple[bytes, ...] = VALUES) -> Replica:
    """Return a replica of which compaction has kept some records."""
    options = BatchOptions(compression=Compression.ZSTD)
    (batch,) = read_batches(build_batch([RecordData(value, b"k") for value in values], options))
    records = [record for record in batch.content().records() if record.offset in kept]
    directory = folder / "topic-0"
    directory.mkdir(parents=True)
    data = with_records(batch, records, delete_horizon_ms=None)
    (directory / offset_name(0, ".log")).write_bytes(data)
    return Replica(directory=directory, is_metadata=False, committed=5, voters=frozenset())


def problems(*replicas: Replica) -> list[str]:
    findings = Findings()
    check_replicas(list(replicas), findings)
    return [finding.problem for finding in findings.all]


@pytest.mark.parametrize("ours", [(0, 1, 2, 3, 4), (0, 3), (4,)])
@pytest.mark.parametrize("theirs", [(0, 1, 2, 3, 4), (1, 3, 4), (0,)])
def test_records_that_only_one_replica_has_left_are_no_difference(
    tmp_path: Path, ours: tuple[int, ...], theirs: tuple[int, ...]
) -> None:
    assert problems(replica(tmp_path / "1", ours), replica(tmp_path / "2", theirs)) == []


@pytest.mark.parametrize("changed", [1, 3, 4])
@pytest.mark.parametrize("ours", [(0, 1, 2, 3, 4), (1, 3, 4)])
@pytest.mark.parametrize("theirs", [(0, 1, 2, 3, 4), (0, 1, 3, 4)])
def test_the_first_record_that_differs_is_found(
    tmp_path: Path, ours: tuple[int, ...], theirs: tuple[int, ...], changed: int
) -> None:
    others = (*VALUES[:changed], b"other", *VALUES[changed + 1 :])
    found = problems(replica(tmp_path / "1", ours), replica(tmp_path / "2", theirs, others))
    assert len(found) == 2
    assert all(f"offset {changed} has different records" in problem for problem in found)
