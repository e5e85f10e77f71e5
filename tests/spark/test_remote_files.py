"""Files of other file systems: in memory, and in an object store that is asked over HTTP."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.object_store import SOCKETS_LEFT_OPEN, Options, fsspec, upload
from tests.support.spark.small_logs import write_log

from kvorum.log_files.errors import LogFilesError
from kvorum.log_files.find import METADATA_SEARCH, find_files
from kvorum.log_files.ranges import plan_ranges
from kvorum.spark.damage_modes import Mode
from kvorum.spark.errors import DamagedFileError
from kvorum.spark.metadata_source.columns import DEFAULT_COLUMNS
from kvorum.spark.metadata_source.filters import NO_FILTER
from kvorum.spark.metadata_source.query import Query
from kvorum.spark.metadata_source.range_rows import arrow_batches
from kvorum.spark.metadata_source.source import parse_options

pytestmark = SOCKETS_LEFT_OPEN


def rows(path: str, options: Options, range_bytes: int = 300) -> list[dict[str, Any]]:
    search = METADATA_SEARCH._replace(file_system_options=options)
    units = plan_ranges(
        find_files([path], search), range_bytes=range_bytes, file_system_options=options
    )
    query = Query(DEFAULT_COLUMNS, NO_FILTER, Mode.FAILFAST, options)
    parts = [part for unit in units for part in arrow_batches(unit, query)]
    return pa.Table.from_batches(parts).to_pylist()


def without_path(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "path"} for row in found]


@pytest.mark.slow
def test_remote_files_give_the_rows_of_local_ones(
    tmp_path: Path, remote: tuple[str, Options]
) -> None:
    for node in (1, 2):
        write_log(tmp_path / f"node-{node}", Random(node), node=node)
    folder, options = remote
    upload(tmp_path, folder, options)
    local = rows(str(tmp_path), {})
    found = rows(folder, options)
    assert without_path(found) == without_path(local)
    assert {row["node_id"] for row in found} == {1, 2}
    paths = {row["path"] for row in found}
    local_paths = {row["path"] for row in local}
    assert paths == {f"{folder}{path.removeprefix(str(tmp_path))}" for path in local_paths}
    assert rows(f"{folder}/*/*/*.log", options) == [r for r in found if r["path"].endswith(".log")]
    one = min(paths)
    assert rows(one, options) == [row for row in found if row["path"] == one]
    with pytest.raises(LogFilesError, match="none"):
        rows(f"{folder}/none", options)
    search = METADATA_SEARCH._replace(file_system_options=options)
    (unit, *_) = plan_ranges(find_files([folder], search), file_system_options=options)
    fsspec.filesystem(folder.partition(":")[0], **options).rm_file(unit.file.path)
    query = Query(DEFAULT_COLUMNS, NO_FILTER, Mode.FAILFAST, options)
    with pytest.raises(DamagedFileError, match="deleted"):
        list(arrow_batches(unit, query))


def test_options_with_the_prefix_are_handed_to_the_file_system() -> None:
    given = {
        "path": "s3://b",
        "fs.anon": "true",
        "fs.client_kwargs": '{"endpoint_url": "http://h"}',
    }
    assert parse_options({**given, "fs.profile": "work"}).files.search.file_system_options == {
        "anon": True, "client_kwargs": {"endpoint_url": "http://h"}, "profile": "work",
    }  # fmt: skip


def test_a_store_that_does_not_answer_is_one_clear_line() -> None:
    options = {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": "http://127.0.0.1:9"}}
    with pytest.raises(LogFilesError, match=r"^s3://b/log: cannot be listed: "):
        rows("s3://b/log", {**options, "config_kwargs": {"retries": {"max_attempts": 0}}})
