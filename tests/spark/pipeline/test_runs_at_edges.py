"""Runs that come upon something unusual: what they keep, what they read, and what they note."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.spark.pipeline.runs import content, rows_of, run_here
from tests.spark.pipeline.story_logs import (
    LOG,
    Story,
    append_record,
    damage,
    make_story,
    segment_of,
    write_snapshot,
)
from tests.spark.spark_filters import with_checksum

from kvorum.history import LogRecord
from kvorum.log_files.damage import Damage
from kvorum.log_files.errors import LogFilesError
from kvorum.spark.errors import OutputInUseError, PipelineError
from kvorum.spark.pipeline import log_reading
from kvorum.spark.pipeline.divergence import batch_places
from kvorum.spark.pipeline.lock import locked
from kvorum.spark.pipeline.output_files import output_files
from kvorum.spark.pipeline.request import PipelineRequest
from kvorum.spark.pipeline.run import find_clusters
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.records import RecordBatch, build_data_batch


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A log of several hundred records."""
    return make_story(tmp_path_factory.mktemp("story") / "c", 7, records=500)


def offset_of(story: Story, number: int) -> int:
    return story.batches[number].base_offset


def test_a_log_that_cannot_be_used_any_more_leaves_the_tables_and_where_they_end(
    story: Story, tmp_path: Path
) -> None:
    run_here(story.write(tmp_path / "a", end=10), tmp_path / "out", keeps_errors=True)
    before = content(tmp_path / "out")
    run_here(story.write(tmp_path / "a", begin=20), tmp_path / "out", keeps_errors=True)
    after = content(tmp_path / "out")
    assert len(after.pop("errors")) == len(before.pop("errors")) + 1
    assert after == before
    report = run_here(story.write(tmp_path / "a"), tmp_path / "out", keeps_errors=True)
    assert report.record_count == story.record_count - offset_of(story, 10)
    run_here(story.write(tmp_path / "b"), tmp_path / "scratch", keeps_errors=True)
    assert content(tmp_path / "out") | {"errors": []} == content(tmp_path / "scratch")


def test_a_run_is_noted_with_what_it_did(story: Story, tmp_path: Path) -> None:
    output = tmp_path / "out"
    half = len(story.batches) // 2
    run_here(story.write(tmp_path / "a", end=half), output, inline_bytes_max=0)
    source = story.write(tmp_path / "a")
    damage(source, story, -5)
    run_here(source, output, inline_bytes_max=0, keeps_errors=True)
    rows = sorted(rows_of(output, "runs"), key=lambda row: row["run"])
    middle, end = offset_of(story, half), offset_of(story, -5)
    assert [
        (row["run"], row["begin"], row["from_offset"], row["to_offset"], row["record_count"])
        for row in rows
    ] == [(1, "log", 0, middle, middle), (2, "saved", middle, end, end - middle)]
    assert [row["error_count"] for row in rows] == [0, 1]
    counts = [{each["table_name"]: each["row_count"] for each in row["row_counts"]} for row in rows]
    assert [each["records"] for each in counts] == [middle, end - middle]
    assert counts[1]["errors"] == 1
    assert sum(each["leader_changes"] for each in counts) >= len(rows_of(output, "leader_changes"))


def test_a_rebuild_keeps_the_notes_of_the_runs_before(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "a", end=10)
    run_here(source, tmp_path / "out")
    run_here(source, tmp_path / "out", is_rebuild=True)
    assert sorted(row["run"] for row in rows_of(tmp_path / "out", "runs")) == [1, 2]


def test_what_is_saved_is_there_once(story: Story, tmp_path: Path) -> None:
    for end in (10, 20, 30):
        run_here(story.write(tmp_path / "a", end=end), tmp_path / "out")
    (state,) = (tmp_path / "out" / "_state").iterdir()
    assert sorted(each.name for each in state.iterdir()) == ["cluster.json", "history-000003"]


def test_a_record_without_a_time_has_no_day(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "a", end=10)
    last = story.batches[9]
    append_record(source, last, NoOpRecord(), timestamp_ms=-1)
    run_here(source, tmp_path / "out")
    rows = [row for row in rows_of(tmp_path / "out", "records") if row["timestamp"] is None]
    assert [(row["offset"], row["day"]) for row in rows] == [(last.next_offset, None)]


def test_one_replica_that_starts_later_does_not_matter(story: Story, tmp_path: Path) -> None:
    run_here(story.write(tmp_path / "in" / "a", end=10), tmp_path / "out")
    story.write(tmp_path / "in" / "a")
    story.write(tmp_path / "in" / "b", node=2, begin=20)
    assert run_here(tmp_path / "in", tmp_path / "out").rebuilt == {}
    offsets = sorted(row["offset"] for row in rows_of(tmp_path / "out", "records"))
    assert offsets == list(range(story.record_count))


def test_the_begin_is_that_of_any_replica(story: Story, tmp_path: Path) -> None:
    story.write(tmp_path / "in" / "a", begin=20)
    story.write(tmp_path / "in" / "b", node=2, end=30)
    assert run_here(tmp_path / "in", tmp_path / "out").record_count == story.record_count
    nodes = {row["offset"]: row["node_id"] for row in rows_of(tmp_path / "out", "records")}
    assert (nodes[0], nodes[story.record_count - 1]) == (2, 1)


def test_of_snapshots_alone_the_latest_one_is_read(story: Story, tmp_path: Path) -> None:
    ends: list[int] = []
    for node, numbers in ((1, (10, 20)), (2, (10, 40, 30))):
        source = story.write(tmp_path / "in" / str(node), node=node, end=1)
        segment_of(source).unlink()
        ends += [write_snapshot(story, source, number) for number in numbers]
    run_here(tmp_path / "in", tmp_path / "out")
    (run,) = rows_of(tmp_path / "out", "runs")
    assert (run["node_id"], run["to_offset"]) == (2, max(ends))


def test_records_before_a_snapshot_count_where_tasks_of_their_own_write_them(
    story: Story, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "a", begin=20)
    end = write_snapshot(story, source, 30)
    run_here(source, tmp_path / "out", inline_bytes_max=0)
    (run,) = rows_of(tmp_path / "out", "runs")
    assert (run["begin"], run["from_offset"]) == ("snapshot", end)
    assert _log_offsets(tmp_path / "out") == list(range(offset_of(story, 20), story.record_count))


def _log_offsets(output: Path) -> list[int]:
    rows = rows_of(output, "records")
    return sorted(row["offset"] for row in rows if row["file_kind"] == "segment")


def test_damage_before_a_snapshot_hides_only_itself(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "a", begin=20)
    write_snapshot(story, source, 40)
    damage(source, story, 30, begin=20)
    run_here(source, tmp_path / "out", keeps_errors=True)
    lost = range(offset_of(story, 30), offset_of(story, 31))
    sound = [each for each in range(offset_of(story, 20), story.record_count) if each not in lost]
    assert _log_offsets(tmp_path / "out") == sound
    (error,) = rows_of(tmp_path / "out", "errors")
    assert error["offset"] == lost.start


def test_another_batch_at_the_end_of_a_segment_is_noticed(story: Story, tmp_path: Path) -> None:
    half = len(story.batches) // 2
    source = story.write(tmp_path / "a", end=half)
    run_here(source, tmp_path / "out")
    story.write(tmp_path / "a", segments=2)
    segment, _ = sorted((source / LOG).glob("*.log"))
    last = story.batches[half - 1]
    other = build_data_batch(
        [record.value or b"" for record in last.records()],
        base_offset=last.base_offset,
        epoch=last.partition_leader_epoch,
        timestamp_ms=last.max_timestamp + 1,
    )
    segment.write_bytes(story.bytes_of(0, half - 1) + other)
    assert list(run_here(source, tmp_path / "out").rebuilt) == [story.cluster_id]


def test_offsets_that_two_segments_have_are_walked_over_once(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "a", end=10)
    overlapping = source / LOG / f"{offset_of(story, 5):020}.log"
    overlapping.write_bytes(story.bytes_of(5, 15))
    request = PipelineRequest((str(source),), str(tmp_path / "out"))
    ((replica,),) = (each.replicas for each in find_clusters(request))
    offsets = [place.base_offset for place in batch_places(replica, {})]
    assert offsets == [offset_of(story, number) for number in range(15)]


def test_a_bootstrap_file_alone_is_not_a_log(golden_sets: Path, tmp_path: Path) -> None:
    (found, *_) = sorted((golden_sets / "dynamic-4.3.1").rglob("bootstrap.checkpoint"))
    shutil.copy(found, tmp_path)
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    with pytest.raises(LogFilesError, match="holds neither segments"):
        run_here(tmp_path, tmp_path / "out")


def test_a_new_segment_without_a_batch_does_not_hide_those_before(
    story: Story, tmp_path: Path
) -> None:
    (story.write(tmp_path / "in" / "a", node=1) / LOG / f"{story.record_count:020}.log").touch()
    story.write(tmp_path / "in" / "b", node=2, end=30)
    run_here(tmp_path / "in", tmp_path / "out")
    assert {row["node_id"] for row in rows_of(tmp_path / "out", "records")} == {1}


def test_a_record_that_is_not_folded_stops_the_run(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = log_reading.decoded_records

    def one_less(path: str, batches: Sequence[RecordBatch]) -> Iterator[LogRecord | Damage]:
        yield from list(sound(path, batches))[:-1]

    monkeypatch.setattr("kvorum.spark.pipeline.log_reading.decoded_records", one_less)
    with pytest.raises(PipelineError, match=r"\d+ records by the headers of batches, 0 behind"):
        run_here(story.write(tmp_path / "a", end=10), tmp_path / "out")
    assert not (tmp_path / "out" / "_commits").exists()


def test_a_lock_of_another_machine_counts_whatever_runs_here() -> None:
    root = "memory://edges-out"
    files = output_files(root, {})
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    holder = {"pid": ended.pid, "host": "elsewhere", "token": ""}
    files.write(f"{root}/_lock", json.dumps(holder).encode())
    try:
        with pytest.raises(OutputInUseError), locked(files, root):
            pass
    finally:
        files.remove_tree(root)


def test_a_replica_of_another_log_does_not_keep_the_next_one_from_standing_in(
    story: Story, tmp_path: Path
) -> None:
    other = make_story(tmp_path / "made", 9, records=500)
    first = story.write(tmp_path / "in" / "a", node=1)
    damage(first, story, 20)
    half = story.record_count // 2
    end = next(i for i, batch in enumerate(other.batches) if batch.base_offset >= half)
    Story(story.cluster_id, other.batches).write(tmp_path / "in" / "b", node=2, end=end)
    story.write(tmp_path / "in" / "c", node=3, end=25)
    report = run_here(tmp_path / "in", tmp_path / "out", keeps_errors=True)
    assert report.record_count == story.record_count
    nodes = {row["offset"]: row["node_id"] for row in rows_of(tmp_path / "out", "records")}
    assert (nodes[offset_of(story, 20)], set(nodes.values())) == (3, {1, 3})


def test_records_after_one_that_cannot_be_decoded_are_counted_as_withheld(
    story: Story, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "a")
    segment = segment_of(source)
    data = bytearray(segment.read_bytes())
    batch = next(
        each for each in story.batches[20:] if not each.is_control and each.record_count >= 3
    )
    undecodable = list(batch.records())[1]
    assert undecodable.value is not None
    # The frame's version is its first byte; the checksum of the batch is right.
    data[data.index(undecodable.value, batch.position)] = 0x7F
    place = slice(batch.position, batch.position + batch.size)
    data[place] = with_checksum(data[place])
    segment.write_bytes(data)
    report = run_here(source, tmp_path / "out", keeps_errors=True)
    assert (report.error_count, report.record_count) == (1, undecodable.offset)
    (error,) = rows_of(tmp_path / "out", "errors")
    assert error["offset"] == undecodable.offset
