"""Which files a path means, and whose they are."""

from pathlib import Path
from random import Random

import pytest
from tests.support.batch_maker import make_batch
from tests.support.spark.small_logs import write_log

from kvorum.log_files.errors import LogFilesError
from kvorum.log_files.find import METADATA_SEARCH, FileKind, Identity, Search, find_files

META = "version=1\ncluster.id={}\nnode.id={}\n"


def touch(folder: Path, *names: str) -> None:
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()


def names(*paths: Path | str) -> list[str]:
    found = find_files([str(path) for path in paths], METADATA_SEARCH)
    return [Path(file.path).name for file in found.files]


def test_a_log_directory_gives_bootstrap_then_the_log_in_order(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "bootstrap.checkpoint",
        "__cluster_metadata-0/00000000000000000007.log",
        "__cluster_metadata-0/00000000000000000007.index",
        "__cluster_metadata-0/00000000000000000000.log",
        "__cluster_metadata-0/00000000000000000005-0000000002.checkpoint",
        "__cluster_metadata-0/00000000000000000009-0000000002.checkpoint.part",
        "__cluster_metadata-0/00000000000000000003.log.deleted",
        "__cluster_metadata-0/quorum-state",
        "orders-1/00000000000000000000.log",
    )
    found = find_files([str(tmp_path)], METADATA_SEARCH).files
    assert [(file.kind, file.offset, file.epoch) for file in found] == [
        (FileKind.BOOTSTRAP, 0, 0),
        (FileKind.SEGMENT, 0, 0),
        (FileKind.SNAPSHOT, 5, 2),
        (FileKind.SEGMENT, 7, 0),
    ]
    assert (found[1].topic, found[1].partition) == ("__cluster_metadata", 0)
    assert names(tmp_path / "orders-1") == ["00000000000000000000.log"]
    assert len(find_files([str(tmp_path)]).files) == 5


@pytest.mark.parametrize("suffix", ["-stray", "-delete", "-future"])
def test_replicas_that_leave_or_arrive_are_taken_only_where_they_are_named(
    tmp_path: Path, suffix: str
) -> None:
    former = f"gone-0.{'0123456789abcdef' * 2}{suffix}"
    touch(
        tmp_path,
        "__cluster_metadata-0/00000000000000000000.log",
        "orders-0/00000000000000000000.log",
        f"{former}/00000000000000000007.log",
        "a copy of orders/00000000000000000003.log",
    )
    for topics in (None, frozenset({"orders"}), METADATA_SEARCH.topics):
        found = find_files([str(tmp_path)], Search(topics)).files
        assert former not in {Path(file.directory).name for file in found}
        assert len(found) == (3 if topics is None else 2)
    assert names(tmp_path / former) == ["00000000000000000007.log"]
    assert names(tmp_path / former / "00000000000000000007.log") == ["00000000000000000007.log"]


def test_linked_partitions_are_found_once_by_the_name_of_the_partition(tmp_path: Path) -> None:
    touch(tmp_path, "disk/elsewhere/00000000000000000000.log", "node/b-1/00000000000000000007.log")
    (tmp_path / "node" / "a-0").symlink_to(tmp_path / "disk" / "elsewhere")
    (tmp_path / "node" / "a-1").symlink_to(tmp_path / "node" / "b-1")
    (tmp_path / "node" / "loop").symlink_to(tmp_path / "node")
    found = find_files([str(tmp_path / "node")]).files
    assert [(file.topic, file.partition, file.offset) for file in found] == [
        ("a", 0, 0),
        ("b", 1, 7),
    ]


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """A partition whose cleaned segment, with offsets 5 to 8, was about to replace two others."""
    folder = tmp_path / "orders-0"
    touch(folder, *(f"{base:020d}.log" for base in (3, 6, 9)), "00000000000000000006.index")
    touch(folder, "00000000000000000005.index.swap", "00000000000000000005.log.deleted")
    (folder / "00000000000000000005.log.swap").write_bytes(make_batch(5) + make_batch(8))
    return folder


def test_a_swap_counts_as_its_segment(interrupted: Path) -> None:
    found = find_files([str(interrupted)]).files
    assert [(Path(file.path).name, file.offset) for file in found] == [
        ("00000000000000000003.log", 3),
        ("00000000000000000005.log.swap", 5),
        ("00000000000000000009.log", 9),
    ]
    assert {file.topic for file in found} == {"orders"}


def test_a_swap_that_may_be_incomplete_does_not_count(interrupted: Path) -> None:
    touch(interrupted, "00000000000000000005.log.cleaned")
    assert [file.offset for file in find_files([str(interrupted)]).files] == [3, 6, 9]


def test_a_swap_that_is_named_is_a_segment(interrupted: Path) -> None:
    (found,) = find_files([str(interrupted / "00000000000000000005.log.swap")]).files
    assert (found.kind, found.offset) == (FileKind.SEGMENT, 5)


def test_files_of_a_fleet_have_the_identity_of_their_nodes(tmp_path: Path) -> None:
    for cluster in ("one", "two"):
        for node in (1, 2):
            folder = tmp_path / cluster / f"node-{node}"
            touch(folder, "__cluster_metadata-0/00000000000000000000.log")
            (folder / "meta.properties").write_text(META.format(cluster, node))
    touch(tmp_path, "loose/00000000000000000003.log")
    default = METADATA_SEARCH._replace(default_identity=Identity("given", 9))
    found = find_files([str(tmp_path)], default).files
    assert [(file.cluster_id, file.node_id) for file in found] == [
        ("given", 9), ("one", 1), ("one", 2), ("two", 1), ("two", 2),
    ]  # fmt: skip
    (one,) = find_files([str(tmp_path / "one/node-2/__cluster_metadata-0")], default).files
    assert (one.cluster_id, one.node_id) == ("one", 2)
    (one,) = find_files([one.path], default).files
    assert (one.cluster_id, one.node_id) == ("one", 2)


def test_a_damaged_meta_properties_counts_as_none(tmp_path: Path) -> None:
    touch(tmp_path, "00000000000000000000.log")
    (tmp_path / "meta.properties").write_text("version=1\n")
    (file,) = find_files([str(tmp_path)]).files
    assert (file.cluster_id, file.node_id) == (None, None)


def test_paths_globs_and_repetitions(tmp_path: Path) -> None:
    write_log(tmp_path / "a", Random(1))
    write_log(tmp_path / "b", Random(2))
    both = names(tmp_path / "a", tmp_path / "b")
    assert len(both) == 8
    assert names(f"{tmp_path}/*") == both
    assert names(tmp_path / "a", tmp_path / "b", tmp_path / "a") == both
    assert names(f"{tmp_path}/?/*/*.checkpoint") == [n for n in both if "checkpoint" in n]
    assert names(f"file://{tmp_path}/a") == names(tmp_path / "a")


def test_one_file_is_enough_even_renamed(tmp_path: Path) -> None:
    touch(tmp_path, "copy.log", "copy.checkpoint")
    assert find_files([str(tmp_path / "copy.log")]).files[0].kind is FileKind.SEGMENT
    assert find_files([str(tmp_path / "copy.checkpoint")]).files[0].kind is FileKind.SNAPSHOT


@pytest.mark.parametrize("name", ["missing", "quorum-state", "empty", "*.none", "other"])
def test_a_path_without_records_is_refused_by_name(tmp_path: Path, name: str) -> None:
    touch(tmp_path, "quorum-state", "other/orders-0/00000000000000000000.log")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogFilesError, match=name.replace("*", "[*]")):
        find_files([str(tmp_path / name)], METADATA_SEARCH)


@pytest.mark.parametrize("path", ["nothing://bucket/log", "s3x://b"])
def test_an_unknown_file_system_is_refused(path: str) -> None:
    with pytest.raises(LogFilesError, match="no file system"):
        find_files([path])
