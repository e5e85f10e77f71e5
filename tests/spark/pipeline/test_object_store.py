"""Tables in an object store, which has neither directories nor a rename: runs, kills, and locks."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from tests.spark.object_store import SOCKETS_LEFT_OPEN, Options, fsspec, object_store
from tests.spark.pipeline.runs import Notes, content, run_here
from tests.spark.pipeline.story_logs import Story
from tests.support.source_tree import ROOT

from kvorum.spark.errors import OutputInUseError, PipelineError
from kvorum.spark.pipeline.lock import locked
from kvorum.spark.pipeline.output_files import RemoteOutput

pytestmark = SOCKETS_LEFT_OPEN

# Has no type hints.
s3fs: Any = import_module("s3fs")

CHANGES: Final = {"put_object", "copy_object", "delete_object", "delete_objects"}
KILLED_RUN: Final = """
import json, os, signal, sys
from pathlib import Path
from tests.spark.pipeline.runs import run_here
from kvorum.spark.pipeline.output_files import RemoteOutput

move, moved = RemoteOutput.move, []

def move_and_die(self, source, target):
    move(self, source, target)
    moved.append(target)
    if len(moved) == 5:
        os.kill(os.getpid(), signal.SIGKILL)

RemoteOutput.move = move_and_die
run_here(Path(sys.argv[1]), sys.argv[2], file_system_options=json.loads(sys.argv[3]))
"""


class KilledError(Exception):
    """Stands for the end of the process that sends requests."""


class Requests:
    """Counts the requests that change something, and refuses all from one number on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        self.kill_before: int | None = None
        call: Callable[..., Any] = s3fs.S3FileSystem._call_s3

        async def counted(system: Any, method: str, *rest: Any, **options: Any) -> Any:
            if method in CHANGES:
                self.sent.append(f"{method} {options.get('Key')}")
                if self.kill_before is not None and len(self.sent) >= self.kill_before:
                    raise KilledError
            return await call(system, method, *rest, **options)

        monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)

    def begin(self, kill_before: int | None = None) -> None:
        self.sent, self.kill_before = [], kill_before


@pytest.fixture(scope="module")
def store() -> Iterator[Options]:
    with object_store() as options:
        yield options


@pytest.fixture
def root(store: Options, request: pytest.FixtureRequest) -> str:
    """An output in a bucket of the test's own."""
    bucket = request.node.name.replace("_", "-")[:60]
    fsspec.filesystem("s3", **store).mkdir(bucket)
    return f"s3://{bucket}/tables"


def stored(root: str, options: Options) -> dict[str, Any]:
    """Return the objects of an output, with what changes when one is written again."""
    system = fsspec.filesystem("s3", **options)
    found: dict[str, dict[str, Any]] = system.find(root, detail=True)
    start = len(root.removeprefix("s3://")) + 1
    return {name[start:]: facts["LastModified"] for name, facts in found.items()}


def content_of(root: str, options: Options, folder: Path) -> dict[str, list[str]]:
    fsspec.filesystem("s3", **options).get(f"{root}/", str(folder), recursive=True)
    return content(folder)


@pytest.mark.slow
def test_the_tables_of_two_runs_are_those_of_a_local_run(
    story: Story, store: Options, root: str, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    run_here(source, root, file_system_options=store)
    assert run_here(story.write(source), root, file_system_options=store).changed_count == 1
    run_here(source, tmp_path / "expected")
    assert content_of(root, store, tmp_path / "got") == content(tmp_path / "expected")
    before = stored(root, store)
    assert run_here(source, root, file_system_options=store).changed_count == 0
    assert stored(root, store) == before
    assert {name.partition("/")[0] for name in before if name.startswith("_")} == {
        "_commits", "_state",
    }  # fmt: skip


@pytest.mark.slow
def test_a_run_that_ends_at_any_request_is_made_up_for(
    story: Story, store: Options, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = story.write(tmp_path / "in")
    run_here(source, tmp_path / "expected")
    expected = content(tmp_path / "expected")
    requests = Requests(monkeypatch)
    run_here(source, f"{root}-whole", file_system_options=store)
    total = len(requests.sent)
    (commit,) = (
        number for number, sent in enumerate(requests.sent, 1) if sent.endswith("_commits/1.json")
    )
    # In the middle; before the commit; between a copy and its removal; at the end.
    for number in (commit // 2, commit, commit + 2, total - 1):
        output = f"{root}-{number}"
        requests.begin(number)
        with pytest.raises((OSError, PipelineError)):
            run_here(source, output, file_system_options=store)
        requests.begin()
        visible = {name.partition("/")[0] for name in stored(output, store)}
        if number <= commit:
            assert visible <= {"_staging", "_lock"}, number
        # The lock of a process that has ended would not count.
        fsspec.filesystem("s3", **store).rm_file(f"{output}/_lock")
        run_here(source, output, file_system_options=store)
        assert content_of(output, store, tmp_path / str(number)) == expected, number
        kept = {name.partition("/")[0] for name in stored(output, store)}
        assert not kept & {"_staging", "_lock"}, number


def test_a_process_that_is_killed_between_two_objects_is_completed_by_the_next(
    story: Story, store: Options, root: str, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "in")
    command = [sys.executable, "-W", "ignore", "-c", KILLED_RUN, str(source), root]
    done = subprocess.run(
        [*command, json.dumps(store)], cwd=ROOT, capture_output=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    progress = Notes()
    report = run_here(source, root, progress, file_system_options=store)
    assert progress.lines == ["run 1 had been committed, and is completed"]
    assert report.changed_count == 0
    run_here(source, tmp_path / "expected")
    assert content_of(root, store, tmp_path / "got") == content(tmp_path / "expected")


def test_of_two_runs_that_begin_at_once_one_has_the_lock(
    store: Options, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = RemoteOutput(root, store), RemoteOutput(root, store)
    read = second.read

    def nothing_yet(path: str) -> bytes | None:
        # The first look of the second run came before the first one wrote.
        monkeypatch.setattr(second, "read", read)
        return None

    monkeypatch.setattr(second, "read", nothing_yet)
    with (
        locked(first, root),
        pytest.raises(OutputInUseError, match="another run began at the same moment"),
        locked(second, root),
    ):
        pass
    assert first.read(f"{root}/_lock") is None


def test_a_store_that_cannot_be_reached_is_one_line(story: Story, tmp_path: Path) -> None:
    options: Options = {
        "key": "k", "secret": "s", "client_kwargs": {"endpoint_url": "http://127.0.0.1:9"},
        "config_kwargs": {"retries": {"max_attempts": 0}},
    }  # fmt: skip
    with pytest.raises(OSError, match="Could not connect to the endpoint"):
        run_here(story.write(tmp_path / "in"), "s3://b/out", file_system_options=options)
