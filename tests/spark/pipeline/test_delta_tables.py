"""Tables in Delta's format, read by delta-rs: its rows, its versions, and runs that were killed."""

from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.object_store import SOCKETS_LEFT_OPEN, fsspec, object_store
from tests.spark.pipeline.runs import KilledError, Notes, comparable, content, rows_of, run_here
from tests.spark.pipeline.story_logs import Story

from kvorum.spark.errors import DamagedOutputError, PipelineError
from kvorum.spark.pipeline.delta_log import LOG
from kvorum.spark.pipeline.layout import partition_values
from kvorum.spark.pipeline.output_files import LocalOutput
from kvorum.spark.pipeline.request import TableFormat
from kvorum.spark.pipeline.tables import ALL_TABLES, RUNS

pytestmark = SOCKETS_LEFT_OPEN

deltalake: Any = pytest.importorskip("deltalake")
pyarrow: Any = import_module("pyarrow")
DELTA = TableFormat.DELTA


def delta_content(output: Path) -> dict[str, list[str]]:
    """Return what delta-rs finds in all tables, in the form of `content`."""
    return {
        table: comparable(table, rows_of_delta(output, table))
        for table in ALL_TABLES
        if table != RUNS
    }


def rows_of_delta(output: Path, table: str) -> list[dict[str, Any]]:
    if not (output / table).exists():
        return []
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(output / table))
    rows: list[dict[str, Any]] = pyarrow.table(query.execute("SELECT * FROM t")).to_pylist()
    return rows


def half_of(story: Story, tmp_path: Path) -> Path:
    """Make tables in ``out`` of the first half of a story; return the directory of its log."""
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    run_here(source, tmp_path / "out", table_format=DELTA)
    return source


def test_delta_rs_reads_the_rows_of_runs_that_replace_files(story: Story, tmp_path: Path) -> None:
    source = half_of(story, tmp_path)
    before = delta_content(tmp_path / "out")
    run_here(story.write(source), tmp_path / "out", table_format=DELTA)
    run_here(source, tmp_path / "expected")
    expected = content(tmp_path / "expected")
    assert delta_content(tmp_path / "out") == expected != before
    # A reader of the directories finds the same rows.
    assert content(tmp_path / "out") == expected
    run_here(source, tmp_path / "out", table_format=DELTA)
    assert deltalake.DeltaTable(tmp_path / "out" / "records").version() == 1
    run_here(source, tmp_path / "out", table_format=DELTA, is_rebuild=True)
    assert delta_content(tmp_path / "out") == expected


@pytest.mark.slow
def test_delta_rs_reads_from_an_object_store(story: Story, tmp_path: Path) -> None:
    source = story.write(tmp_path / "in", end=len(story.batches) // 2)
    run_here(story.write(tmp_path / "all"), tmp_path / "expected")
    with object_store() as options:
        fsspec.filesystem("s3", **options).mkdir("warehouse")
        root = "s3://warehouse/kafka"
        for _ in range(2):
            run_here(source, root, table_format=DELTA, file_system_options=options)
            story.write(source)
        settings = {
            "AWS_ACCESS_KEY_ID": options["key"],
            "AWS_SECRET_ACCESS_KEY": options["secret"],
            "AWS_ENDPOINT_URL": options["client_kwargs"]["endpoint_url"],
            "AWS_REGION": options["client_kwargs"]["region_name"],
            "AWS_ALLOW_HTTP": "true",
        }
        found = deltalake.DeltaTable(f"{root}/partitions", storage_options=settings)
        rows = found.to_pyarrow_table().to_pylist()
    expected = rows_of(tmp_path / "expected", "partitions")
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert found.version() == 1


def test_a_killed_run_adds_each_commit_once(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = story.write(tmp_path / "in")
    run_here(source, tmp_path / "expected")
    expected = content(tmp_path / "expected")
    create = LocalOutput.create
    logs: list[str] = []
    limit = 0

    def counted(files: LocalOutput, path: str, data: bytes) -> bool:
        if len(logs) == limit:
            raise KilledError
        logs.append(path)
        return create(files, path, data)

    monkeypatch.setattr(LocalOutput, "create", counted)
    for limit in (0, 1, Random(5).randrange(2, 20)):
        logs.clear()
        output = tmp_path / f"killed-{limit}"
        with pytest.raises(KilledError):
            run_here(source, output, table_format=DELTA)
        monkeypatch.setattr(LocalOutput, "create", create)
        progress = Notes()
        run_here(source, output, progress, table_format=DELTA)
        monkeypatch.setattr(LocalOutput, "create", counted)
        assert progress.lines == ["run 1 had been committed, and is completed"]
        assert delta_content(output) == expected, limit
        for table in (path.parent for path in output.glob(f"*/{LOG}")):
            assert [path.name for path in (table / LOG).iterdir()] == [f"{0:020}.json"], table


def test_commits_of_other_programs_are_kept(story: Story, tmp_path: Path) -> None:
    source = half_of(story, tmp_path)
    records = deltalake.DeltaTable(tmp_path / "out" / "records")
    records.alter.set_table_properties({"delta.appendOnly": "false"})
    run_here(story.write(source), tmp_path / "out", table_format=DELTA)
    again = deltalake.DeltaTable(tmp_path / "out" / "records")
    assert (again.version(), again.metadata().id) == (2, records.metadata().id)
    assert again.metadata().configuration == {"delta.appendOnly": "false"}


def test_commits_that_another_program_has_removed_after_its_checkpoint_are_not_missed(
    story: Story, tmp_path: Path
) -> None:
    source = half_of(story, tmp_path)
    output = tmp_path / "out"
    before = deltalake.DeltaTable(output / "records")
    before.alter.set_table_properties({"delta.appendOnly": "false"})
    before.create_checkpoint()
    (output / "records" / LOG / f"{0:020}.json").unlink()
    run_here(story.write(source), output, table_format=DELTA)
    run_here(source, tmp_path / "expected")
    assert delta_content(output)["records"] == content(tmp_path / "expected")["records"]
    after = deltalake.DeltaTable(output / "records").metadata()
    assert (after.id, after.configuration) == (before.metadata().id, {"delta.appendOnly": "false"})


def test_a_table_whose_metadata_another_program_has_removed_is_not_given_another(
    story: Story, tmp_path: Path
) -> None:
    source = half_of(story, tmp_path)
    output = tmp_path / "out"
    first = output / "records" / LOG / f"{0:020}.json"
    first.rename(first.with_name(f"{1:020}.json")).write_text('{"commitInfo":{}}\n')
    with pytest.raises(PipelineError, match="records/_delta_log: another program has removed"):
        run_here(story.write(source), output, table_format=DELTA)


@pytest.mark.parametrize(
    ("written", "text"),
    [('{"commitInfo":{}}\n{"add":{"pa', "line 2 is no JSON"), ("[1]\n", "line 1 is no action")],
)
def test_a_commit_that_another_program_has_torn_is_named(
    story: Story, tmp_path: Path, written: str, text: str
) -> None:
    source = half_of(story, tmp_path)
    output = tmp_path / "out"
    (output / "records" / LOG / f"{1:020}.json").write_text(written)
    with pytest.raises(DamagedOutputError, match=f"records/_delta_log/{1:020}.json: {text}"):
        run_here(story.write(source), output, table_format=DELTA)


def test_directories_name_the_values_of_partitions() -> None:
    path = "cluster_id=a%2Fb/day=__HIVE_DEFAULT_PARTITION__/part-1.parquet"
    assert partition_values(path) == {"cluster_id": "a/b", "day": None}
