"""Runs that end in the middle, and what the next one makes of it."""

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any

import pytest
from tests.spark.pipeline.runs import KilledError, Notes, content, files_of, run_here
from tests.spark.pipeline.story_logs import Story, make_story
from tests.support.source_tree import ROOT

from kvorum.spark.pipeline.layout import COMMITS
from kvorum.spark.pipeline.output_files import LocalOutput

KILLED_RUN = """
import os, signal, sys
from pathlib import Path
from tests.spark.pipeline.runs import KilledError, run_here
from kvorum.spark.pipeline.output_files import LocalOutput

write = LocalOutput.write

def write_and_die(self, path, data):
    write(self, path, data)
    if path.endswith("/_commits/1.json"):
        os.kill(os.getpid(), signal.SIGKILL)

LocalOutput.write = write_and_die
run_here(Path(sys.argv[1]), Path(sys.argv[2]))
"""


class Steps:
    """Counts what is done to files, and ends the run before one step of a number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.kill_before: int | None = None
        self.commit_at: list[int] = []
        for name in ("write", "move", "remove", "remove_tree"):
            monkeypatch.setattr(LocalOutput, name, self._counted(getattr(LocalOutput, name)))

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(files: LocalOutput, path: str, *rest: Any) -> Any:
            self.count += 1
            if self.count == self.kill_before:
                raise KilledError
            if f"/{COMMITS}/" in path and path.endswith(".json"):
                self.commit_at.append(self.count)
            return method(files, path, *rest)

        return counted

    def begin(self, kill_before: int | None) -> None:
        self.count, self.kill_before = 0, kill_before


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return make_story(tmp_path_factory.mktemp("story") / "c", 11, records=600)


@pytest.mark.slow
def test_a_run_that_ends_at_any_step_is_made_up_for(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = len(story.batches) // 2
    run_here(story.write(tmp_path / "whole"), tmp_path / "expected")
    expected = content(tmp_path / "expected")
    source = story.write(tmp_path / "in", end=half)
    run_here(source, tmp_path / "before")
    steps = Steps(monkeypatch)
    story.write(source)
    copytree(tmp_path / "before", tmp_path / "counted")
    run_here(source, tmp_path / "counted")
    (commit,), total = steps.commit_at, steps.count
    random = Random(3)
    around = {commit, commit + 1, commit + 5, total - 1, total}
    for number in sorted(around | set(random.sample(range(1, total), 3))):
        output = tmp_path / f"killed-{number}"
        copytree(tmp_path / "before", output)
        steps.begin(number)
        with pytest.raises(KilledError):
            run_here(source, output)
        # The next run is killed, too, in its recovery or soon after it.
        steps.begin(random.randrange(1, 12))
        with suppress(KilledError):
            run_here(source, output)
        steps.begin(None)
        run_here(source, output, Notes())
        assert content(output) == expected, number
        assert not any(name.startswith("_staging") for name in files_of(output)), number
        assert ((output / COMMITS / "2.done").exists(), number) == (True, number)


@pytest.mark.slow
def test_a_process_that_is_killed_after_the_commit_is_completed_by_the_next(
    story: Story, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "in")
    command = [sys.executable, "-c", KILLED_RUN, str(source), str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "out" / "records").exists()
    progress = Notes()
    report = run_here(source, tmp_path / "out", progress)
    assert progress.lines == ["run 1 had been committed, and is completed"]
    assert report.changed_count == 0
    run_here(source, tmp_path / "expected")
    assert content(tmp_path / "out") == content(tmp_path / "expected")
