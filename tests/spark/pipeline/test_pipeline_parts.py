"""Parts of the pipeline by themselves: locks, saved states, journals, the console, rows by day."""

import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.pipeline.runs import rows_of

from kvorum.spark.errors import DamagedOutputError, OutputInUseError
from kvorum.spark.pipeline import staged_files
from kvorum.spark.pipeline.cluster_state import ClusterState, Tail, TailPlace
from kvorum.spark.pipeline.job import failure_line
from kvorum.spark.pipeline.journal import Journal, commit, recover
from kvorum.spark.pipeline.layout import cluster_directory, day_directory, day_of
from kvorum.spark.pipeline.lock import locked
from kvorum.spark.pipeline.output_files import LocalOutput, OutputFiles, output_files
from kvorum.spark.pipeline.progress import Console
from kvorum.spark.pipeline.staged_files import Stage

ROOT = "memory://parts-out"


@pytest.fixture
def remote() -> Iterator[OutputFiles]:
    files = output_files(ROOT, {})
    yield files
    files.remove_tree(ROOT)


def test_a_remote_lock_is_removed_at_the_end(remote: OutputFiles) -> None:
    with locked(remote, ROOT):
        assert json.loads(remote.read(f"{ROOT}/_lock") or b"")["pid"] == os.getpid()
        with (
            pytest.raises(OutputInUseError, match=f"process {os.getpid()} on "),
            locked(remote, ROOT),
        ):
            pass
    assert remote.read(f"{ROOT}/_lock") is None


def test_a_remote_lock_of_another_machine_counts_until_it_is_removed(remote: OutputFiles) -> None:
    remote.write(f"{ROOT}/_lock", b'{"pid": 1, "host": "elsewhere", "token": ""}')
    with (
        pytest.raises(OutputInUseError, match=r"process 1 on elsewhere .* remove this file"),
        locked(remote, ROOT),
    ):
        pass


def test_a_remote_lock_of_a_process_that_has_ended_is_taken_over(remote: OutputFiles) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    holder = {"pid": ended.pid, "host": socket.gethostname(), "token": ""}
    remote.write(f"{ROOT}/_lock", json.dumps(holder).encode())
    with locked(remote, ROOT):
        pass


def test_a_state_is_what_was_saved() -> None:
    state = ClusterState(
        Tail(9, 2, 77), TailPlace("a.log", 120), 9, [["a.log", 300]], "h", ["x"], with_json=True
    )
    assert ClusterState.from_bytes("p", state.to_bytes()) == state


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 99}'])
def test_other_bytes_than_a_state_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedOutputError, match="p: not what a run of this release left"):
        ClusterState.from_bytes("p", data)


def test_a_committed_file_that_is_gone_is_named(tmp_path: Path) -> None:
    files, root = LocalOutput(), str(tmp_path)
    journal = Journal(
        1, "_staging/1", [["_staging/1/a", "records/a"]], [], {"records": 1}, "parquet", {}
    )
    with pytest.raises(DamagedOutputError, match="records/a: run 1 is committed, but this file"):
        commit(files, root, journal)
    assert files.names_in(f"{root}/_commits") == ["1.json"]


def test_other_bytes_than_a_journal_are_refused(tmp_path: Path) -> None:
    files = LocalOutput()
    files.write(f"{tmp_path}/_commits/1.json", b"{}")
    with pytest.raises(DamagedOutputError, match=r"1\.json: not a journal"):
        recover(files, str(tmp_path))


def test_directories_are_named_as_hive_names_them() -> None:
    assert cluster_directory("a/b=c") == "cluster_id=a%2Fb%3Dc"
    assert day_directory(day_of(1_700_000_000_000)) == "day=2023-11-14"
    assert day_directory(day_of(-1)) == "day=__HIVE_DEFAULT_PARTITION__"


def test_a_terminal_has_one_line_that_is_written_again() -> None:
    stream = io.StringIO()
    console = Console(stream, is_terminal=True)
    console.show("clusters", done=1, total=3, records=1234)
    console.show("clusters", done=2, total=3, records=5678)
    console.close()
    lines = stream.getvalue().split("\r")
    assert lines[1].startswith("1 of 3 clusters done, 1,234 records, ")
    assert lines[2].startswith("2 of 3 clusters done, 5,678 records, ")
    assert stream.getvalue().endswith("\r")


def test_a_file_ends_with_the_line_that_all_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("kvorum.spark.pipeline.progress.time.monotonic", lambda: now)
    stream = io.StringIO()
    console = Console(stream, is_terminal=False)
    now = 11.0
    console.show("clusters", done=1, total=3, records=1234)
    now = 12.0
    console.show("clusters", done=2, total=3, records=2345)
    console.show("clusters", done=3, total=3, records=5678)
    first, last = stream.getvalue().splitlines()
    assert first.startswith("1 of 3 clusters done, ")
    assert last.startswith("3 of 3 clusters done, ")


def test_a_quick_run_leaves_no_progress_in_a_file() -> None:
    stream = io.StringIO()
    Console(stream, is_terminal=False).show("clusters", done=3, total=3, records=5678)
    assert not stream.getvalue()


def test_what_failed_in_an_executor_is_one_line() -> None:
    text = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times
  File "worker.py", line 64, in read_command
    return self.loads(obj)
ModuleNotFoundError: No module named 'pyarrow'

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:600)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
"""
    assert failure_line(text) == "ModuleNotFoundError: No module named 'pyarrow'"
    assert failure_line("An error occurred.\n: java.lang.IllegalStateException: it stopped\n") == (
        "java.lang.IllegalStateException: it stopped"
    )
    assert failure_line("nothing known") == "nothing known"


BATCH_COUNT = 400
ROWS_PER_BATCH = 50
BOUND = 40 * ROWS_PER_BATCH * 8
"""The bytes of 40 batches: 20 are written whenever there are more."""


def test_the_largest_collections_become_files_when_too_much_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged_files, "HELD_BYTES_MAX", BOUND)
    stage = Stage(LocalOutput(), str(tmp_path), "_staging", 1)
    rows = staged_files.DayRows(stage, "cluster_id=c")
    for number in range(BATCH_COUNT):
        first = number * ROWS_PER_BATCH
        values = list(range(first, first + ROWS_PER_BATCH))
        batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.int64())})
        rows.add_batch("numbers", 20_000 + number % 2, batch)
    rows.finish()
    assert BATCH_COUNT / 40 <= len(stage.staged) <= BATCH_COUNT / 10
    for file in stage.staged:
        LocalOutput().move(f"{tmp_path}/{file.source}", f"{tmp_path}/{file.target}")
    found = rows_of(tmp_path, "numbers")
    assert sorted(row["value"] for row in found) == list(range(BATCH_COUNT * ROWS_PER_BATCH))
