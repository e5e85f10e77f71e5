"""Temporary folders whose making or removal was interrupted: a later process removes the rest."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kvorum.node.embedded.temporary_folder import (
    MAKING_SECONDS_MAX,
    UNFINISHED_LOCK_NAME,
    TemporaryFolder,
    make_temporary_folder,
)

PREFIX = "of-this-test-"
TREES = ("broker-101", "controller-1")
STEP_COUNT = 9
"""A file and two directories of each tree, a file of the cluster, the lock and the folder."""


@pytest.fixture(autouse=True)
def _folders_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def used_folder() -> TemporaryFolder:
    """Return a folder with files, as a cluster has them."""
    folder = make_temporary_folder(PREFIX)
    for tree in TREES:
        (folder.path / tree / "data").mkdir(parents=True)
        (folder.path / tree / "data" / "00.log").touch()
    (folder.path / "cluster.properties").touch()
    return folder


def make_old(folder: Path) -> None:
    """Have a folder changed last before any that is being made."""
    then_s = folder.stat().st_mtime - 2 * MAKING_SECONDS_MAX
    os.utime(folder, (then_s, then_s))


def test_a_removal_leaves_nothing(tmp_path: Path) -> None:
    used_folder().remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("done_count", range(STEP_COUNT))
def test_an_interrupted_removal_is_finished_by_the_next_process(
    done_count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that the next one finds the folder by was removed with all others."""
    folder = used_folder()
    left = iter(range(done_count))

    def interrupted(step: Callable[..., None]) -> Callable[..., None]:
        def take(*arguments: object, **options: object) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            step(*arguments, **options)

        return take

    with monkeypatch.context() as patched:
        for name in ("unlink", "rmdir"):
            patched.setattr(os, name, interrupted(getattr(os, name)))
        with pytest.raises(KeyboardInterrupt):
            folder.remove()
    make_old(folder.path)
    make_temporary_folder(PREFIX).remove()
    assert not list(tmp_path.iterdir())


def test_data_that_cannot_be_removed_is_removed_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = used_folder()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", refuse)
        folder.remove()
    make_temporary_folder(PREFIX).remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("names", [(), (UNFINISHED_LOCK_NAME,)])
def test_a_folder_that_was_never_made_is_removed_once_it_is_old(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    """As one whose file went last, before a kill."""
    folder = tmp_path / f"{PREFIX}unmade"
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    make_temporary_folder(PREFIX).remove()
    assert folder.exists(), "another process may be making it"
    make_old(folder)
    make_temporary_folder(PREFIX).remove()
    assert not list(tmp_path.iterdir())


def test_an_old_folder_of_a_release_without_locks_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / f"{PREFIX}without-a-lock" / "data"
    data.mkdir(parents=True)
    make_old(data.parent)
    make_temporary_folder(PREFIX).remove()
    assert data.exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    used = used_folder()
    make_old(used.path)
    make_temporary_folder(PREFIX).remove()
    assert list(tmp_path.iterdir()) == [used.path]
    used.remove()
