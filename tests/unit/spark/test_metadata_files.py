"""Which files a path means, and which of them make up the present state."""

from pathlib import Path

import pytest

from kvorum.spark.errors import MetadataFilesError
from kvorum.spark.metadata_files import FileKind, MetadataFile, current_files, find_files


def touch(folder: Path, *names: str) -> None:
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()


def test_a_metadata_log_directory_gives_bootstrap_then_the_log_in_order(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "bootstrap.checkpoint",
        "meta.properties",
        "__cluster_metadata-0/00000000000000000007.log",
        "__cluster_metadata-0/00000000000000000007.index",
        "__cluster_metadata-0/00000000000000000000.log",
        "__cluster_metadata-0/00000000000000000005-0000000002.checkpoint",
        "__cluster_metadata-0/00000000000000000009-0000000002.checkpoint.part",
        "__cluster_metadata-0/00000000000000000003.log.deleted",
        "__cluster_metadata-0/quorum-state",
    )
    inner = tmp_path / "__cluster_metadata-0"
    assert find_files(str(tmp_path)) == [
        MetadataFile(str(tmp_path / "bootstrap.checkpoint"), FileKind.BOOTSTRAP),
        MetadataFile(str(inner / "00000000000000000000.log"), FileKind.SEGMENT),
        MetadataFile(
            str(inner / "00000000000000000005-0000000002.checkpoint"), FileKind.SNAPSHOT, 5, 2
        ),
        MetadataFile(str(inner / "00000000000000000007.log"), FileKind.SEGMENT, 7),
    ]


def test_one_file_is_enough_even_renamed(tmp_path: Path) -> None:
    touch(tmp_path, "copy.log", "copy.checkpoint")
    assert find_files(str(tmp_path / "copy.log"))[0].kind is FileKind.SEGMENT
    assert find_files(str(tmp_path / "copy.checkpoint"))[0].kind is FileKind.SNAPSHOT


@pytest.mark.parametrize("name", ["missing", "quorum-state", "empty"])
def test_a_path_without_records_is_refused_by_name(tmp_path: Path, name: str) -> None:
    touch(tmp_path, "quorum-state")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MetadataFilesError, match=name):
        find_files(str(tmp_path / name))


def test_the_latest_snapshot_counts_and_older_ones_do_not() -> None:
    old = MetadataFile("old", FileKind.SNAPSHOT, 5, 1)
    new = MetadataFile("new", FileKind.SNAPSHOT, 9, 3)
    segment = MetadataFile("segment", FileKind.SEGMENT, 4)
    assert current_files([new, segment, old]) == (new, [segment])


def test_a_log_that_begins_after_what_is_covered_is_refused() -> None:
    snapshot = MetadataFile("s", FileKind.SNAPSHOT, 5, 1)
    late = MetadataFile("late.log", FileKind.SEGMENT, 6)
    with pytest.raises(MetadataFilesError, match=r"late\.log.*offsets from 5 on"):
        current_files([snapshot, late])
    with pytest.raises(MetadataFilesError, match="offsets from 0 on"):
        current_files([late])
    assert current_files([snapshot]) == (snapshot, [])
