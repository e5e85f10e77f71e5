"""Tables on other file systems: in memory, and in an object store that is asked over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.spark.object_store import SOCKETS_LEFT_OPEN, Options, fsspec, upload
from tests.spark.report.made_up_cluster import MadeUpCluster, healthy_cluster
from tests.spark.report.written_tables import write_log

from kvorum.cli import main
from kvorum.spark.report.table_files import TablesError
from kvorum.spark.report.tables_directory import TablesDirectory

pytestmark = SOCKETS_LEFT_OPEN


def fs_arguments(options: Options) -> list[str]:
    return [f"--fs={key}={json.dumps(value)}" for key, value in options.items()]


def report(tables: str, pages: Path, *arguments: str) -> dict[str, str]:
    """Run the command; return the pages by their names."""
    assert main(["report", "--tables", tables, "--output", str(pages), *arguments]) == 0
    return {path.name: path.read_text("utf-8") for path in pages.iterdir()}


def test_pages_are_those_of_tables_on_this_machine(
    tmp_path: Path, remote: tuple[str, Options]
) -> None:
    folder, options = remote
    local = tmp_path / "tables"
    write_log(local, healthy_cluster().records, "calm")
    write_log(local, MadeUpCluster(1).records, "a/b <c>")
    upload(local, folder, options)
    expected = report(str(local), tmp_path / "expected")
    assert len(expected) == 3
    assert report(f"{folder}/", tmp_path / "found", *fs_arguments(options)) == expected


def test_a_folder_without_tables_is_one_line(remote: tuple[str, Options]) -> None:
    folder, options = remote
    with pytest.raises(TablesError, match=rf"^{folder}: no such directory$"):
        TablesDirectory(folder, options)
    system: Any = fsspec.filesystem(folder.partition(":")[0], **options)
    system.pipe_file(f"{folder}/other/file", b"")
    with pytest.raises(TablesError, match=rf"^{folder}: has none of the tables of kvorum"):
        TablesDirectory(folder, options)


def test_a_run_that_commits_meanwhile_is_noticed(
    tmp_path: Path, remote: tuple[str, Options]
) -> None:
    folder, options = remote
    write_log(tmp_path, healthy_cluster().records)
    upload(tmp_path, folder, options)
    tables = TablesDirectory(folder, options)
    tables.demand_unchanged()
    system: Any = fsspec.filesystem(folder.partition(":")[0], **options)
    system.pipe_file(f"{folder}/_commits/1.json", b"{}")
    with pytest.raises(TablesError, match=rf"^{folder}: run 1 is committed, but its files are"):
        tables.demand_unchanged()
    system.pipe_file(f"{folder}/_commits/1.done", b"")
    with pytest.raises(TablesError, match="changed the tables while they were read: try again"):
        tables.demand_unchanged()
    TablesDirectory(folder, options).demand_unchanged()


def test_a_file_that_is_not_parquet_is_one_line(
    tmp_path: Path, remote: tuple[str, Options]
) -> None:
    folder, options = remote
    write_log(tmp_path, healthy_cluster().records)
    (tmp_path / "topics" / "cluster_id=c1" / "part-0.parquet").write_bytes(b"nothing")
    upload(tmp_path, folder, options)
    tables = TablesDirectory(folder, options).cluster("c1")
    match = rf"^{folder}/topics/cluster_id=c1: cannot be read as Parquet: [^\n]+$"
    with pytest.raises(TablesError, match=match):
        tables.read("topics", ("topic_name",))


def test_a_store_that_does_not_answer_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = {
        "key": "k", "secret": "s", "client_kwargs": {"endpoint_url": "http://127.0.0.1:9"},
        "config_kwargs": {"retries": {"max_attempts": 0}},
    }  # fmt: skip
    arguments = ["report", "--tables", "s3://b/tables", "--output", "x", *fs_arguments(options)]
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("kvorum report: s3://b/tables: cannot be listed: ")
    assert error.count("\n") == 1


def test_a_scheme_that_fsspec_does_not_know_is_one_line() -> None:
    with pytest.raises(TablesError, match=r"^nowhere://x: no file system for nowhere://: "):
        TablesDirectory("nowhere://x")
