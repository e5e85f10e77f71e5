"""Directories of tables: what is found in them, and what is one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.spark.report.made_up_cluster import BEGIN_MS, MadeUpCluster
from tests.unit.spark.report.written_tables import TYPES, write_log

from kvorum.spark.history.arrow_schemas import arrow_schema
from kvorum.spark.report.tables_directory import TablesDirectory, TablesError


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
        columns = arrow_schema(row_type).names
        assert tables.read(name, columns).count >= 0
    assert tables.read("acl_history", ("offset", "time", "principal")).count == 0


def test_files_that_are_not_there_yet_leave_a_cluster_empty(tmp_path: Path) -> None:
    (tmp_path / "quorum_epochs" / "cluster_id=c1" / "day=2026-11-16").mkdir(parents=True)
    assert TablesDirectory(tmp_path).cluster("c1").read("quorum_epochs", ("epoch",)).count == 0


def test_another_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match="no such directory"):
        TablesDirectory(tmp_path / "missing")
    with pytest.raises(TablesError, match="has none of the tables of kvorum pipeline"):
        TablesDirectory(tmp_path)


def test_tables_without_a_cluster_are_none_yet(tmp_path: Path) -> None:
    (tmp_path / "partition_timeline").mkdir()
    assert TablesDirectory(tmp_path).cluster_ids == []


def test_an_unknown_cluster_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    write_log(tmp_path, MadeUpCluster(1).records, "prod")
    with pytest.raises(TablesError, match="'dev' is in no table; the clusters are: prod"):
        TablesDirectory(tmp_path).cluster("dev")


def test_a_file_that_is_no_parquet_is_an_error_that_names_it(tmp_path: Path) -> None:
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
