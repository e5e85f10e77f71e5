"""The command refuses in one line that names what, where and what to do; nothing changes."""

import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from tests.support.lost_quorum import Story, export, uncommitted_tail

from kvorum.cli import main
from kvorum.simulation.options import QuorumKind
from kvorum.storage.files import RealFileSystem
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.directory_lock import lock_directory
from kvorum.storage.small_files.java_properties import load_java_properties


@pytest.fixture(scope="module")
def story() -> Story:
    return uncommitted_tail(QuorumKind.DYNAMIC, 5)


@pytest.fixture
def folders(story: Story, tmp_path: Path) -> list[Path]:
    """The directories of the voters; the shortest log first."""
    return [export(node, tmp_path) for node in story.voters]


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """The command, which must fail; what is returned is its complaint."""

    def run(*words: object, code: int = 1) -> str:
        assert main(["quorum", "recover", *map(str, words)]) == code
        return capsys.readouterr().err

    return run


def by_length(folders: list[Path], capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """Return a directory with a shorter log and one with a longer one."""
    for one, other in permutations(folders, 2):
        words = ["quorum", "recover", "--directories", f"{one},{other}"]
        assert main(words) == 0
        chosen = capsys.readouterr().out
        if main([*words, "--voters", f"{node_id(one)}@h:1"]) == 1:
            assert f"Recovered from: node {node_id(other)}," in chosen
            return one, other
    raise AssertionError("all logs are of one length")


def node_id(folder: Path) -> int:
    return int(load_java_properties((folder / "meta.properties").read_bytes())["node.id"])


def test_a_majority_needs_no_recovery(folders: list[Path], refused: Refused) -> None:
    words = ",".join(map(str, folders[:4]))
    assert "No recovery is needed" in refused("--directories", words, "--execute")


def test_a_shorter_log_has_to_be_allowed(
    folders: list[Path], refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    shorter, longer = by_length(folders, capsys)
    words = ("--directories", f"{shorter},{longer}", "--voters", f"{node_id(shorter)}@host:9093")
    text = refused(*words, "--execute")
    assert f"({longer}) is longer" in text
    assert "--allow-shorter-log" in text
    assert main(["quorum", "recover", *words, "--allow-shorter-log"]) == 0


def test_a_directory_in_use_is_refused(folders: list[Path], refused: Refused) -> None:
    held = lock_directory(folders[0], RealFileSystem())
    try:
        text = refused("--directories", folders[0], "--execute")
    finally:
        held.release()
    assert f"{folders[0]} is in use" in text


def test_a_damaged_log_is_refused_with_its_place(folders: list[Path], refused: Refused) -> None:
    (log,) = sorted((folders[0] / METADATA_LOG_DIRECTORY).glob("*.log"))[:1]
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    text = refused("--directories", folders[0], "--execute")
    assert f"{log}: " in text
    assert "(at byte 0)" in text
    assert "Leave the directory out" in text
    assert log.read_bytes() == content
    assert not list(folders[0].glob("kvorum-*"))


def test_directories_of_two_clusters_and_twice_the_same_node_are_refused(
    folders: list[Path], tmp_path: Path, refused: Refused
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folders[0], copy)
    assert "both belong to node" in refused("--directories", f"{folders[0]},{copy}")
    properties = copy / "meta.properties"
    cluster = load_java_properties(properties.read_bytes())["cluster.id"]
    properties.write_text(properties.read_text().replace(cluster, "another"))
    assert "name directories of one cluster" in refused("--directories", f"{folders[0]},{copy}")


def test_an_observer_has_to_be_allowed_and_to_be_given_an_address(
    folders: list[Path], refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = folders[0] / "meta.properties"
    old = f"node.id={node_id(folders[0])}\n"
    properties.write_text(properties.read_text().replace(old, "node.id=101\n"))
    words = ("--directories", folders[0])
    assert "--allow-observer" in refused(*words, "--execute")
    assert "--voters 101@HOST:PORT" in refused(*words, "--allow-observer", "--execute")
    allowed = (*words, "--allow-observer", "--voters", "101@host:9093", "--execute")
    assert main(["quorum", "recover", *map(str, allowed)]) == 0
    assert "101@host:9093" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--directories", ","],
        ["--directories", "a", "--config", "b"],
        ["--directories", "a", "--voters", "1"],
        ["--directories", "a", "--voters", "1@a:1,2@b:2"],
    ],
)
def test_wrong_usage_is_2(words: list[str], refused: Refused) -> None:
    assert "usage: kvorum quorum recover" in refused(*words, code=2)


def test_anything_that_is_not_a_directory_of_a_node_is_refused(
    tmp_path: Path, refused: Refused
) -> None:
    assert "is not a directory" in refused("--directories", tmp_path / "none")
    assert "has no meta.properties" in refused("--directories", tmp_path)
