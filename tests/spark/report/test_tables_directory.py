"""Directories of tables: what is found in them, and what is one clear error."""

from pathlib import Path

import pytest
from tests.spark.report.made_up_cluster import BEGIN_MS, MadeUpCluster
from tests.spark.report.written_tables import TYPES, parquet, write_log

from kvorum.cli import main
from kvorum.spark.arrow_schemas import arrow_schema
from kvorum.spark.report.table_files import TablesError
from kvorum.spark.report.tables_directory import TablesDirectory
from kvorum.spark.report.written_report import write_report


def test_clusters_are_found_by_the_names_of_directories(tmp_path: Path) -> None:
    for cluster_id in ("plain", "a/b=c %", "_hidden"):
        write_log(tmp_path, MadeUpCluster(1).records, cluster_id)
    (tmp_path / "_runs" / "cluster_id=no-table").mkdir(parents=True)
    directory = TablesDirectory(tmp_path)
    assert directory.cluster_ids == ["_hidden", "a/b=c %", "plain"]
    rows = directory.cluster("a/b=c %").read("quorum_epochs", ("epoch", "from_time"))
    assert (rows.values("epoch"), rows.times_ms("from_time").tolist()) == ([1], [BEGIN_MS])


def test_a_table_that_was_never_written_has_no_rows(tmp_path: Path) -> None:
    write_log(tmp_path, MadeUpCluster(1).records)
    tables = TablesDirectory(tmp_path).cluster("c1")
    for name, row_type in TYPES.items():
        assert tables.read(name, arrow_schema(row_type).names).count >= 0
    assert tables.read("acl_history", ("offset", "time", "principal")).count == 0


def test_files_that_are_not_there_yet_leave_a_cluster_empty(tmp_path: Path) -> None:
    (tmp_path / "quorum_epochs" / "cluster_id=c1" / "day=2026-11-16").mkdir(parents=True)
    assert TablesDirectory(tmp_path).cluster("c1").read("quorum_epochs", ("epoch",)).count == 0


def test_another_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="no such directory"):
        TablesDirectory(tmp_path / "missing")
    with pytest.raises(TablesError, match="has none of the tables of kvorum pipeline"):
        TablesDirectory(tmp_path)


def test_a_directory_of_tables_may_lack_clusters(tmp_path: Path) -> None:
    (tmp_path / "_commits").mkdir()
    assert TablesDirectory(tmp_path).cluster_ids == []


def test_a_foreign_directory_with_a_name_of_ours_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "topics" / "orders").mkdir(parents=True)
    with pytest.raises(TablesError, match="has none of the tables of kvorum pipeline"):
        TablesDirectory(tmp_path)


def test_an_unknown_cluster_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    write_log(tmp_path, MadeUpCluster(1).records, "prod")
    with pytest.raises(TablesError, match="'dev' is in no table; the clusters are: prod"):
        TablesDirectory(tmp_path).cluster("dev")


def test_a_file_that_is_not_parquet_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_log(tmp_path, MadeUpCluster(1).records)
    (file,) = (tmp_path / "quorum_epochs").rglob("*.parquet")
    file.write_bytes(b"nothing")
    with pytest.raises(TablesError, match=r"quorum_epochs.*cannot be read as Parquet: ") as error:
        TablesDirectory(tmp_path).cluster("c1").read("quorum_epochs", ("epoch",))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("trace", "name"), [("_delta_log", "Delta"), ("metadata", "Iceberg")])
def test_tables_of_other_formats_are_an_error(tmp_path: Path, trace: str, name: str) -> None:
    (tmp_path / "brokers" / trace).mkdir(parents=True)
    with pytest.raises(TablesError, match=f"is a table of {name}; the report reads Parquet"):
        TablesDirectory(tmp_path)


@pytest.mark.parametrize(("lost", "is_needed"), [("epoch", True), ("leader", False)])
def test_a_file_without_a_column_is_an_error_where_every_row_has_a_value(
    tmp_path: Path, lost: str, *, is_needed: bool
) -> None:
    write_log(tmp_path, MadeUpCluster(1).records)
    (file,) = (tmp_path / "quorum_epochs").rglob("*.parquet")
    parquet.write_table(parquet.read_table(file).drop_columns([lost]), file)
    tables = TablesDirectory(tmp_path).cluster("c1")
    if is_needed:
        with pytest.raises(TablesError, match="a file has no column 'epoch': another release"):
            tables.read("quorum_epochs", (lost,))
    else:
        assert tables.read("quorum_epochs", (lost,)).values(lost) == [None]


def test_a_column_of_another_type_is_an_error_that_names_the_table(tmp_path: Path) -> None:
    write_log(tmp_path, MadeUpCluster(1).records)
    (file,) = (tmp_path / "quorum_epochs").rglob("*.parquet")
    parquet.write_table(parquet.read_table(file).set_column(0, "epoch", [["one"]]), file)
    with pytest.raises(TablesError, match=r"quorum_epochs/cluster_id=c1: cannot be read as Parq"):
        TablesDirectory(tmp_path).cluster("c1").read("quorum_epochs", ("epoch",))


def test_a_directory_that_cannot_be_listed_is_an_error_that_names_it(tmp_path: Path) -> None:
    # Not even the superuser may have a name of that length.
    directory = tmp_path / ("x" * 300)
    with pytest.raises(TablesError, match=rf"^{directory}: cannot be listed: ") as error:
        TablesDirectory(directory)
    assert "\n" not in str(error.value)


def test_a_run_that_is_not_complete_is_an_error(tmp_path: Path) -> None:
    write_log(tmp_path, MadeUpCluster(1).records)
    commits = tmp_path / "_commits"
    commits.mkdir()
    for name in ("1.json", "1.done", "2.json", "2.json.unfinished"):
        (commits / name).touch()
    with pytest.raises(TablesError, match="run 2 is committed, but its files are not all in"):
        TablesDirectory(tmp_path)
    (commits / "2.done").touch()
    assert TablesDirectory(tmp_path).cluster_ids == ["c1"]


def test_a_page_of_tables_that_a_run_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    write_log(tmp_path / "tables", MadeUpCluster(1).records)
    tables = TablesDirectory(tmp_path / "tables")
    (tmp_path / "tables" / "_commits").mkdir()
    for name in ("1.json", "1.done"):
        (tmp_path / "tables" / "_commits" / name).touch()
    for output in ("page.html", "pages"):
        with pytest.raises(TablesError, match="changed the tables while they were read"):
            list(write_report(tables, tmp_path / output))
        assert not (tmp_path / output).exists()


def test_an_output_that_is_not_on_this_machine_is_wrong_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["report", "--tables", "tables", "--output", "s3://bucket/pages"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.endswith("argument --output: 's3://bucket/pages' is no path of this machine")
