"""Runs over small logs: what is new, what was there, damage, and what stops a run."""

import shutil
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.spark.pipeline.runs import Notes, content, files_of, rows_of, run_here
from tests.spark.pipeline.story_logs import (
    Story,
    append_record,
    damage,
    make_story,
    segment_of,
    write_snapshot,
)

from kvorum.log_files.errors import LogFilesError
from kvorum.spark.errors import (
    DamagedOutputError,
    OutputInUseError,
    PipelineError,
    UnreconciledError,
)
from kvorum.spark.pipeline import records_task
from kvorum.spark.pipeline.lock import locked
from kvorum.spark.pipeline.log_reading import Piece
from kvorum.spark.pipeline.output_files import LocalOutput
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A log of several hundred records."""
    return make_story(tmp_path_factory.mktemp("story") / "c", 7)


@pytest.fixture(scope="module")
def whole(story: Story, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The tables of the whole log, from one run."""
    folder = tmp_path_factory.mktemp("whole")
    run_here(story.write(folder / "in" / "a"), folder / "out")
    return content(folder / "out")


def test_the_tables_have_rows(whole: dict[str, list[str]], story: Story) -> None:
    assert len(whole["records"]) == story.record_count
    for table in ("partition_timeline", "leader_changes", "broker_states", "partitions"):
        assert whole[table], table


@pytest.mark.parametrize("seed", range(4))
def test_runs_over_a_growing_log_give_the_tables_of_one_run(
    story: Story, whole: dict[str, list[str]], tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    ends = [*sorted(random.sample(range(2, len(story.batches)), 3)), len(story.batches)]
    read = 0
    for end in ends:
        source = story.write(tmp_path / "a", end=end, segments=random.choice([1, 2, 3]))
        report = run_here(source, tmp_path / "out")
        read += report.record_count
        assert (report.changed_count, report.rebuilt) == (1, {})
    assert content(tmp_path / "out") == whole
    assert read == story.record_count


def test_a_rerun_over_the_same_input_starts_nothing_and_changes_nothing(
    story: Story, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "a")
    run_here(source, tmp_path / "out")
    before = files_of(tmp_path / "out")
    progress = Notes()
    report = run_here(source, tmp_path / "out", progress)
    assert (report.changed_count, report.record_count, progress.lines) == (0, 0, [])
    assert files_of(tmp_path / "out") == before


def test_a_cluster_without_news_is_not_touched(story: Story, tmp_path: Path) -> None:
    other = make_story(tmp_path / "made", 8, records=600)
    first, second = story.write(tmp_path / "in" / "a"), tmp_path / "in" / "b"
    other.write(second, end=20)
    run_here([first, second], tmp_path / "out")
    before = files_of(tmp_path / "out")
    other.write(second)
    report = run_here([first, second], tmp_path / "out")
    assert (report.cluster_count, report.changed_count) == (2, 1)
    after = files_of(tmp_path / "out")
    of_first = [path for path in before if story.cluster_id in path]
    assert of_first
    assert all(after[path] == before[path] for path in of_first)


def test_a_log_that_was_rewritten_is_folded_again(story: Story, tmp_path: Path) -> None:
    other = Story(story.cluster_id, make_story(tmp_path / "made", 9).batches)
    run_here(story.write(tmp_path / "a", end=len(story.batches) // 2), tmp_path / "out")
    report = run_here(other.write(tmp_path / "a"), tmp_path / "out")
    assert list(report.rebuilt) == [story.cluster_id]
    assert "rewritten" in report.rebuilt[story.cluster_id]
    run_here(other.write(tmp_path / "b"), tmp_path / "scratch")
    found, expected = content(tmp_path / "out"), content(tmp_path / "scratch")
    assert without_paths(found) == without_paths(expected)


def test_a_log_of_the_same_size_with_another_end_is_noticed(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "a")
    run_here(source, tmp_path / "out")
    segment = segment_of(source)
    data = bytearray(segment.read_bytes())
    # The epoch is not covered by the checksum, and a higher one is in order at the end of a log.
    data[story.batches[-1].position + 15] += 1
    segment.write_bytes(data)
    assert list(run_here(source, tmp_path / "out").rebuilt) == [story.cluster_id]


def test_a_log_that_was_cut_is_folded_again(story: Story, tmp_path: Path) -> None:
    run_here(story.write(tmp_path / "a"), tmp_path / "out")
    half = len(story.batches) // 2
    report = run_here(story.write(tmp_path / "a", end=half), tmp_path / "out")
    assert list(report.rebuilt) == [story.cluster_id]
    assert len(rows_of(tmp_path / "out", "records")) == story.batches[half].base_offset


def test_a_log_that_starts_later_without_a_snapshot_is_refused(
    story: Story, tmp_path: Path
) -> None:
    run_here(story.write(tmp_path / "a", end=10), tmp_path / "out")
    with pytest.raises(LogFilesError, match=r"begins at offset \d+, but nothing here covers"):
        run_here(story.write(tmp_path / "a", begin=20), tmp_path / "out")


def test_a_log_that_starts_later_goes_on_with_a_snapshot_and_keeps_the_rows_of_before(
    story: Story, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    count = len(story.batches)
    run_here(story.write(tmp_path / "a", end=count // 4), tmp_path / "out")
    closed = [row for row in rows_of(tmp_path / "out", "partition_timeline") if row["to_offset"]]
    source = story.write(tmp_path / "a", begin=count // 2)
    end = write_snapshot(story, source, count // 2 + 10)
    assert "goes on with a snapshot" in run_here(source, tmp_path / "out").rebuilt[story.cluster_id]
    found = content(tmp_path / "out")
    for table in ("topics", "partitions", "brokers", "configs"):
        assert found[table] == whole[table], table
    rows = rows_of(tmp_path / "out", "partition_timeline")
    assert all(row in rows for row in closed)
    assert {row["from_offset"] for row in rows if row["begins_earlier"]} == {end - 1}
    records = rows_of(tmp_path / "out", "records")
    offsets = [row["offset"] for row in records if row["file_kind"] == "segment"]
    gap = range(story.batches[count // 4].base_offset, story.batches[count // 2].base_offset)
    assert sorted(offsets) == sorted(set(range(story.record_count)) - set(gap))


def without_paths(tables: dict[str, list[str]]) -> dict[str, list[str]]:
    """Leave out the tables whose rows name files."""
    naming = {"records", "replica_divergence"}
    return {table: rows for table, rows in tables.items() if table not in naming}


def test_records_of_large_files_are_written_by_tasks_of_their_own(
    story: Story, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    progress = Notes()
    source = story.write(tmp_path / "in" / "a", segments=3)
    run_here(source, tmp_path / "out", progress, inline_bytes_max=0)
    assert f"3/3 parts of the table of records {story.record_count}" in progress.lines
    assert len(content(tmp_path / "out")["records"]) == len(whole["records"])


@pytest.mark.parametrize("inline_bytes", [0, 2**30])
def test_a_record_that_is_lost_on_the_way_stops_the_run(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline_bytes: int
) -> None:
    sound = records_task.sound_rows

    def one_less(batch: Any, piece: Piece) -> Any:
        return sound(batch, piece).slice(1)

    monkeypatch.setattr(records_task, "sound_rows", one_less)
    with pytest.raises(PipelineError, match="records were read, but"):
        run_here(story.write(tmp_path / "a"), tmp_path / "out", inline_bytes_max=inline_bytes)
    has_files = any((tmp_path / "out").rglob("*.parquet"))
    assert not (has_files and (tmp_path / "out" / "_commits").exists())


def test_damage_stops_the_run_with_file_and_offset_and_nothing_is_written(
    story: Story, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "a")
    offset = damage(source, story, 40)
    with pytest.raises(PipelineError, match=rf"\.log: damaged at offset {offset}: .*--errors"):
        run_here(source, tmp_path / "out")
    assert [name for name in files_of(tmp_path / "out") if not name.startswith("_staging")] == []


def test_with_errors_the_cluster_stops_at_damage_and_the_others_go_on(
    story: Story, tmp_path: Path
) -> None:
    other = make_story(tmp_path / "made", 8, records=600)
    source = story.write(tmp_path / "in" / "a")
    offset = damage(source, story, 40)
    other.write(tmp_path / "in" / "b")
    assert run_here(tmp_path / "in", tmp_path / "out", keeps_errors=True).error_count == 1
    (error,) = rows_of(tmp_path / "out", "errors")
    assert (error["offset"], error["kind"]) == (offset, "damaged")
    assert error["path"].startswith(str(source))
    records = rows_of(tmp_path / "out", "records")
    of_story = [row["offset"] for row in records if row["cluster_id"] == story.cluster_id]
    assert sorted(of_story) == list(range(offset))
    assert len(records) - len(of_story) == other.record_count
    run_here(story.write(tmp_path / "b", end=40), tmp_path / "scratch")
    stopped = [
        row
        for row in rows_of(tmp_path / "out", "partition_timeline")
        if row["cluster_id"] == story.cluster_id
    ]
    assert len(stopped) == len(rows_of(tmp_path / "scratch", "partition_timeline"))


def test_a_damaged_replica_is_left_for_one_that_has_the_offsets(
    story: Story, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    first = story.write(tmp_path / "in" / "a", node=1)
    offset = damage(first, story, 40)
    story.write(tmp_path / "in" / "b", node=2, end=len(story.batches) - 5)
    report = run_here(tmp_path / "in", tmp_path / "out", keeps_errors=True)
    (error,) = rows_of(tmp_path / "out", "errors")
    assert (error["offset"], report.record_count) == (offset, story.record_count)
    assert without_paths(content(tmp_path / "out")) | {"errors": []} == without_paths(whole)
    records = rows_of(tmp_path / "out", "records")
    assert sorted(row["offset"] for row in records) == list(range(story.record_count))
    assert {row["node_id"] for row in records if row["offset"] == offset} == {2}
    assert {row["node_id"] for row in records if row["offset"] > offset + 200} == {1}


def test_a_replica_whose_log_is_another_one_does_not_stand_in(story: Story, tmp_path: Path) -> None:
    other = Story(story.cluster_id, make_story(tmp_path / "made", 9, records=600).batches)
    first = story.write(tmp_path / "in" / "a", node=1)
    offset = damage(first, story, 40)
    other.write(tmp_path / "in" / "b", node=2, end=60)
    assert run_here(tmp_path / "in", tmp_path / "out", keeps_errors=True).record_count == offset
    assert {row["node_id"] for row in rows_of(tmp_path / "out", "records")} == {1}


def test_a_record_that_cannot_follow_ends_the_history_before_it(
    story: Story, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "a", end=50)
    last = story.batches[49]
    change = PartitionChangeRecord(partition_id=0, topic_id=b"no topic has it!", leader=1)
    append_record(source, last, change, timestamp_ms=last.max_timestamp)
    with pytest.raises(PipelineError, match=rf"\.log: the record at offset {last.next_offset} "):
        run_here(source, tmp_path / "out")
    assert run_here(source, tmp_path / "out", keeps_errors=True).record_count == last.next_offset
    (error,) = rows_of(tmp_path / "out", "errors")
    assert (error["kind"], error["offset"]) == ("contradiction", last.next_offset)
    run_here(story.write(tmp_path / "b", end=50), tmp_path / "scratch")
    assert {**content(tmp_path / "out"), "errors": []} == content(tmp_path / "scratch")


def test_with_errors_a_cluster_without_a_begin_is_a_row_and_the_others_go_on(
    story: Story, tmp_path: Path
) -> None:
    other = make_story(tmp_path / "made", 8, records=600)
    story.write(tmp_path / "in" / "a", begin=20)
    other.write(tmp_path / "in" / "b")
    report = run_here(tmp_path / "in", tmp_path / "out", keeps_errors=True)
    (error,) = rows_of(tmp_path / "out", "errors")
    assert (error["cluster_id"], error["kind"]) == (story.cluster_id, "unusable")
    assert report.record_count == other.record_count
    assert run_here(tmp_path / "in", tmp_path / "out", keeps_errors=True).changed_count == 0
    story.write(tmp_path / "in" / "a")
    run_here(tmp_path / "in", tmp_path / "out", keeps_errors=True)
    assert len(rows_of(tmp_path / "out", "records")) == other.record_count + story.record_count


def test_a_replica_that_is_behind_has_not_diverged(story: Story, tmp_path: Path) -> None:
    story.write(tmp_path / "in" / "a", node=1, end=50)
    story.write(tmp_path / "in" / "b", node=2)
    run_here(tmp_path / "in", tmp_path / "out")
    (row,) = rows_of(tmp_path / "out", "replica_divergence")
    assert (row["kind"], row["is_divergence"], row["node_id"]) == ("behind", False, 1)
    ends = story.batches[50].base_offset, story.record_count
    assert (row["from_offset"], row["to_offset"]) == ends
    assert {row["node_id"] for row in rows_of(tmp_path / "out", "records")} == {2}


def test_a_replica_with_a_torn_tail_is_read_up_to_it(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "a", end=50)
    segment = segment_of(source)
    segment.write_bytes(segment.read_bytes() + bytes(story.batches[50].data)[:40])
    assert run_here(source, tmp_path / "out").record_count == story.batches[50].base_offset
    (run,) = rows_of(tmp_path / "out", "runs")
    assert run["is_tail_torn"]


def test_a_second_run_on_the_same_output_is_refused(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "a")
    with (
        locked(LocalOutput(), str(tmp_path / "out")),
        pytest.raises(OutputInUseError, match=r"process \d+ on .* writes to it"),
    ):
        run_here(source, tmp_path / "out")
    run_here(source, tmp_path / "out")


def test_rebuild_replaces_all_rows(
    story: Story, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    source = story.write(tmp_path / "a")
    run_here(source, tmp_path / "out")
    assert run_here(source, tmp_path / "out", is_rebuild=True).record_count == story.record_count
    assert content(tmp_path / "out") == whole
    names = [Path(name).name for name in files_of(tmp_path / "out") if "records" in name]
    assert {name.split("-")[1] for name in names} == {"000002"}


def test_json_is_a_column_that_cannot_come_later(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "a", end=10)
    run_here(source, tmp_path / "out", with_json=True)
    assert all(row["json"] for row in rows_of(tmp_path / "out", "records"))
    with pytest.raises(PipelineError, match="with --json: do the same, or use --rebuild"):
        run_here(source, tmp_path / "out")


def test_inputs_that_are_no_logs_are_one_line(tmp_path: Path, story: Story) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogFilesError, match="empty: holds neither segments"):
        run_here(tmp_path / "empty", tmp_path / "out")
    source = story.write(tmp_path / "a")
    (source / "meta.properties").unlink()
    with pytest.raises(LogFilesError, match=r"no meta\.properties names its cluster"):
        run_here(source, tmp_path / "out")
    run_here(source, tmp_path / "out", cluster_id="mine")
    assert (tmp_path / "out" / "records" / "cluster_id=mine").is_dir()


def test_a_directory_with_other_tables_is_not_written_to(story: Story, tmp_path: Path) -> None:
    (tmp_path / "out" / "records").mkdir(parents=True)
    with pytest.raises(DamagedOutputError, match="holds a table 'records' that no run"):
        run_here(story.write(tmp_path / "a"), tmp_path / "out")


def test_a_footer_with_other_rows_stops_the_run(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def footer(_: object) -> SimpleNamespace:
        return SimpleNamespace(num_rows=3)

    monkeypatch.setattr("pyarrow.parquet.read_metadata", footer)
    with pytest.raises(PipelineError, match="3 rows where"):
        run_here(story.write(tmp_path / "a"), tmp_path / "out")
    assert not (tmp_path / "out" / "_commits").exists()
    assert issubclass(UnreconciledError, PipelineError)


def test_the_output_may_be_on_a_file_system_of_fsspec(
    story: Story, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    fsspec = pytest.importorskip("fsspec")
    source = story.write(tmp_path / "a", end=60)
    run_here(source, "memory://pipeline-out")
    run_here(story.write(tmp_path / "a"), "memory://pipeline-out")
    memory = fsspec.filesystem("memory")
    memory.get("memory://pipeline-out/", str(tmp_path / "got"), recursive=True)
    shutil.rmtree(tmp_path / "got" / "_state")
    assert {name: len(rows) for name, rows in content(tmp_path / "got").items()} == {
        name: len(rows) for name, rows in whole.items()
    }
    memory.rm("memory://pipeline-out", recursive=True)
