"""Tables in Iceberg's format, read by pyiceberg: rows, versions, and runs that were killed."""

import gzip
import json
import shutil
import sys
from collections.abc import Sequence
from datetime import date
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.object_store import SOCKETS_LEFT_OPEN, fsspec, object_store
from tests.spark.pipeline.runs import KilledError, Notes, comparable, content, rows_of, run_here
from tests.spark.pipeline.story_logs import Story

from kvorum.spark.errors import PipelineError
from kvorum.spark.pipeline.output_files import LocalOutput
from kvorum.spark.pipeline.request import TableFormat
from kvorum.spark.pipeline.tables import ALL_TABLES, RUNS

pytestmark = SOCKETS_LEFT_OPEN

pytest.importorskip("pyiceberg")
StaticTable: Any = import_module("pyiceberg.table").StaticTable
iceberg_manifests: Any = import_module("kvorum.spark.pipeline.iceberg_manifests")
ICEBERG = TableFormat.ICEBERG
EPOCH = date(1970, 1, 1)
# One whose rows are replaced, one that grows, and one with rows that are open.
SAMPLE = ("partitions", "records", "partition_timeline")


def iceberg_content(output: Path, tables: Sequence[str] = ALL_TABLES) -> dict[str, list[str]]:
    """Return what pyiceberg finds in tables, in the form of `content`."""
    return {
        table: comparable(table, rows_of_iceberg(output, table))
        for table in tables
        if table != RUNS
    }


def rows_of_iceberg(output: Path, table: str) -> list[dict[str, Any]]:
    if not (output / table).exists():
        return []
    rows: list[dict[str, Any]] = opened(output, table).scan().to_arrow().to_pylist()
    return rows


def opened(output: Path, table: str) -> Any:
    """Return the version of a table that its hint names."""
    return StaticTable.from_metadata(str(output / table))


def metadata_files(output: Path, table: str) -> set[str]:
    return {path.name for path in (output / table / "metadata").iterdir()}


def test_pyiceberg_reads_the_rows_of_runs_that_replace_files(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    run_here(source, tmp_path / "out", table_format=ICEBERG)
    before = iceberg_content(tmp_path / "out")
    run_here(story.write(source), tmp_path / "out", table_format=ICEBERG)
    run_here(source, tmp_path / "expected")
    expected = content(tmp_path / "expected")
    assert iceberg_content(tmp_path / "out") == expected != before
    # A reader of the directories of clusters finds the same rows.
    assert content(tmp_path / "out") == expected
    run_here(source, tmp_path / "out", table_format=ICEBERG)
    hint = tmp_path / "out" / "records" / "metadata" / "version-hint.text"
    assert hint.read_text() == "2"
    run_here(source, tmp_path / "out", table_format=ICEBERG, is_rebuild=True)
    assert iceberg_content(tmp_path / "out") == expected
    assert hint.read_text() == "3"


def test_a_run_adds_one_snapshot_and_removes_what_none_refers_to(
    story: Story, tmp_path: Path
) -> None:
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    run_here(source, tmp_path / "out", table_format=ICEBERG)
    first = opened(tmp_path / "out", "partitions")
    run_here(story.write(source), tmp_path / "out", table_format=ICEBERG)
    table = opened(tmp_path / "out", "partitions")
    (snapshot,) = table.snapshots()
    assert (snapshot.sequence_number, first.current_snapshot().sequence_number) == (2, 1)
    assert (table.metadata.table_uuid, table.location()) == (
        first.metadata.table_uuid,
        str(tmp_path / "out" / "partitions"),
    )
    assert [field.name for field in table.spec().fields] == ["cluster_id"]
    summary = snapshot.summary.additional_properties
    assert snapshot.summary.operation.value == "overwrite"
    assert int(summary["deleted-data-files"]) == 1
    rows = table.scan().to_arrow().num_rows
    assert int(summary["total-records"]) == int(summary["added-records"]) == rows
    run_here(source, tmp_path / "out", table_format=ICEBERG, is_rebuild=True)
    names = metadata_files(tmp_path / "out", "partitions")
    assert sorted(name for name in names if not name.endswith(".avro")) == [
        "v2.metadata.json",
        "v3.metadata.json",
        "version-hint.text",
    ]
    # A list and a manifest of each of both.
    assert len(names) == 3 + 4


def test_large_manifests_stay_as_they_are(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_manifests, "SMALL_MANIFEST_ENTRIES", 2)
    for part in (1, 2, 3):
        source = story.write(tmp_path / "in", end=part * len(story.batches) // 3)
        run_here(source, tmp_path / "out", table_format=ICEBERG)
    run_here(source, tmp_path / "expected")
    expected = content(tmp_path / "expected")
    assert iceberg_content(tmp_path / "out", SAMPLE) == {name: expected[name] for name in SAMPLE}
    lists = {
        name: opened(tmp_path / "out", name)
        .current_snapshot()
        .manifests(iceberg_manifests.OutputFileIO(LocalOutput()))
        for name in SAMPLE
    }
    assert [len(lists[name]) for name in SAMPLE] == [1, 2, 3]
    # The second run's manifest has the first one's file, too; the third run left it as it was.
    assert [each.added_files_count + each.existing_files_count for each in lists["records"]] == [
        1,
        2,
    ]


def test_conditions_on_partitions_leave_files_out(story: Story, tmp_path: Path) -> None:
    run_here(story.write(tmp_path / "in"), tmp_path / "out", table_format=ICEBERG)
    table = opened(tmp_path / "out", "records")
    assert [field.name for field in table.spec().fields] == ["cluster_id", "day"]
    assert list(table.scan(row_filter="cluster_id == 'another'").plan_files()) == []
    stored = rows_of(tmp_path / "out", "records")
    day = stored[0]["day"]
    wanted = table.scan(row_filter=f"day == '{day}'")
    assert {task.file.partition[1] for task in wanted.plan_files()} == {
        (date.fromisoformat(day) - EPOCH).days
    }
    expected = [row["offset"] for row in stored if row["day"] == day]
    assert sorted(wanted.to_arrow()["offset"].to_pylist()) == sorted(expected)


@pytest.mark.slow
def test_pyiceberg_reads_from_an_object_store(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    run_here(story.write(tmp_path / "all"), tmp_path / "expected")
    with object_store() as options:
        fsspec.filesystem("s3", **options).mkdir("warehouse")
        root = "s3://warehouse/kafka"
        for _ in range(2):
            run_here(source, root, table_format=ICEBERG, file_system_options=options)
            story.write(source)
        properties = {
            "s3.access-key-id": options["key"],
            "s3.secret-access-key": options["secret"],
            "s3.endpoint": options["client_kwargs"]["endpoint_url"],
            "s3.region": options["client_kwargs"]["region_name"],
        }
        found = StaticTable.from_metadata(f"{root}/partitions", properties)
        rows = found.scan().to_arrow().to_pylist()
    expected = rows_of(tmp_path / "expected", "partitions")
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert found.current_snapshot().sequence_number == 2


class CountedOutput:
    """Counts what is done to files once a run is committed, and kills the run at a number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kill_at: int | None = None) -> None:
        self.done: list[str] = []
        for name in ("write", "create", "move", "remove"):
            monkeypatch.setattr(LocalOutput, name, self._counted(name, kill_at))

    def _counted(self, name: str, kill_at: int | None) -> Any:
        original = getattr(LocalOutput, name)

        def counted(files: LocalOutput, path: str, *rest: Any) -> Any:
            target = rest[0] if name == "move" else path
            if self.done or target.endswith("_commits/2.json"):
                if len(self.done) == kill_at:
                    raise KilledError
                self.done.append(f"{name} {target}")
            return original(files, path, *rest)

        return counted


@pytest.mark.slow
def test_a_run_that_is_killed_anywhere_is_completed_once(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    output, backup = tmp_path / "out", tmp_path / "backup"
    run_here(source, output, table_format=ICEBERG)
    before = iceberg_content(output, SAMPLE)
    # The metadata name files by their whole paths, so every trial is in the same place.
    shutil.copytree(output, backup)
    story.write(source)
    with monkeypatch.context() as patch:
        done = CountedOutput(patch).done
        run_here(source, output, table_format=ICEBERG)
    after = iceberg_content(output, SAMPLE)
    names = {table: len(metadata_files(output, table)) for table in SAMPLE}
    steps = [number for number, step in enumerate(done) if "/partitions/" in step]
    # Its file is moved in, a manifest, their list, the version, the hint; the old file is removed.
    assert [done[step].split(" ")[0] for step in steps] == [
        "move", "write", "write", "create", "write", "remove",
    ]  # fmt: skip
    steps += [0, 1, len(done) - 1, *Random(5).sample(range(len(done)), 2)]
    for kill_at in sorted(set(steps)):
        shutil.rmtree(output)
        shutil.copytree(backup, output)
        with monkeypatch.context() as patch:
            CountedOutput(patch, kill_at)
            with pytest.raises(KilledError):
                run_here(source, output, table_format=ICEBERG)
        # Before the commit of a table a reader has its old rows, after it the new ones.
        for table, found in iceberg_content(output, SAMPLE).items():
            assert found in (before[table], after[table]), (done[kill_at], table)
        progress = Notes()
        run_here(source, output, progress, table_format=ICEBERG)
        # The first step is the commit itself.
        if kill_at:
            assert progress.lines == ["run 2 had been committed, and is completed"]
        assert iceberg_content(output, SAMPLE) == after, done[kill_at]
        for table in SAMPLE:
            assert opened(output, table).current_snapshot().sequence_number == 2, done[kill_at]
            assert len(metadata_files(output, table)) == names[table], done[kill_at]


def test_properties_that_other_programs_set_are_kept(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    run_here(source, tmp_path / "out", table_format=ICEBERG)
    folder = tmp_path / "out" / "records" / "metadata"
    foreign = json.loads((folder / "v1.metadata.json").read_text())
    foreign["properties"]["comment"] = "theirs"
    (folder / "v2.gz.metadata.json").write_bytes(gzip.compress(json.dumps(foreign).encode()))
    run_here(story.write(source), tmp_path / "out", table_format=ICEBERG)
    again = opened(tmp_path / "out", "records")
    assert again.metadata_location.endswith("/v3.metadata.json")
    assert again.properties["comment"] == "theirs"
    run_here(source, tmp_path / "expected")
    assert iceberg_content(tmp_path / "out") == content(tmp_path / "expected")


def test_another_writer_at_the_same_moment_is_an_error(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = story.write(tmp_path / "in")
    create = LocalOutput.create

    def overtaken(files: LocalOutput, path: str, data: bytes) -> bool:
        if path.endswith("/v1.metadata.json"):
            create(files, path, b"{}")
        return create(files, path, data)

    monkeypatch.setattr(LocalOutput, "create", overtaken)
    with pytest.raises(PipelineError, match=r"v1\.metadata\.json: another program wrote to this"):
        run_here(source, tmp_path / "out", table_format=ICEBERG)


def test_a_column_that_comes_and_goes_is_one_of_the_schema(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "in")
    ids: dict[bool, dict[str, int]] = {}
    for with_json in (False, True, False):
        run_here(
            source, tmp_path / "out", table_format=ICEBERG, with_json=with_json, is_rebuild=True
        )
        schema = opened(tmp_path / "out", "records").schema()
        assert ("json" in schema.column_names) is with_json
        ids[with_json] = {field.name: field.field_id for field in schema.fields}
        run_here(source, tmp_path / f"expected-{with_json}", with_json=with_json, is_rebuild=True)
        expected = content(tmp_path / f"expected-{with_json}")["records"]
        assert iceberg_content(tmp_path / "out", ("records",))["records"] == expected
    assert ids[True] == {**ids[False], "json": ids[True]["json"]}


def test_an_output_keeps_its_format(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "in")
    for own in TableFormat:
        run_here(source, tmp_path / own, table_format=own)
        for other in set(TableFormat) - {own}:
            with pytest.raises(PipelineError, match=f"the format {own}: give --format {own}"):
                run_here(source, tmp_path / own, table_format=other)


def test_a_missing_package_is_one_clear_line(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "kvorum.spark.pipeline.iceberg_commit", raising=False)
    monkeypatch.delattr(import_module("kvorum.spark.pipeline"), "iceberg_commit", raising=False)
    monkeypatch.setitem(sys.modules, "pyiceberg.manifest", None)
    with pytest.raises(PipelineError) as error:
        run_here(story.write(tmp_path / "in"), tmp_path / "out", table_format=ICEBERG)
    assert str(error.value) == (
        "--format iceberg needs the package pyiceberg: install kvorum with its extra 'iceberg'"
    )
    assert not (tmp_path / "out").exists()
