"""Tables in Delta's format: a log beside the files of each table says which of them it consists of.

A run adds one commit to the log of each table that it changed, ``_delta_log/<version>.json``, by
the published protocol (https://github.com/delta-io/delta/blob/master/PROTOCOL.md, reader version 1
and writer version 2). The action `txn` holds the number of the run, so that a run which is
completed after a kill adds no second commit.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet

from kvorum.spark.arrow_types import spark_type
from kvorum.spark.errors import DamagedOutputError, PipelineError
from kvorum.spark.pipeline.layout import AddedFile, TableChange, partition_values
from kvorum.spark.pipeline.output_files import OutputFiles

LOG: Final = "_delta_log"
APPLICATION: Final = "kvorum-pipeline"
VERSION_DIGITS: Final = 20
SUFFIX: Final = ".json"
REMEDY: Final = "mend the commit by the program that wrote it, or name another output directory"
PARTITION_TYPES: Final[Mapping[str, str]] = {"cluster_id": "string", "day": "date"}
# Names of Delta that differ from those of Spark's SQL.
_NAMES: Final[Mapping[str, str]] = {
    "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long",
}  # fmt: skip
# The hints of pyarrow's module for Parquet are incomplete.
_PARQUET: Any = pyarrow.parquet

Action = dict[str, Any]


def add_commit(files: OutputFiles, table_root: str, change: TableChange) -> None:
    """See `AddCommit`."""
    run, added, removed, now_ms = change
    versions = _versions(files, table_root)
    last_run, metadata = _last_commit(files, table_root, versions) or (0, _new_metadata(now_ms))
    if last_run >= run:
        return
    actions: list[Action] = [
        {"commitInfo": {"timestamp": now_ms, "operation": "WRITE", "engineInfo": APPLICATION}},
        {"txn": {"appId": APPLICATION, "version": run, "lastUpdated": now_ms}},
    ]
    if not versions:
        actions.append({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    if added:
        with files.open(f"{table_root}/{added[0].path}") as file:
            metadata = {**metadata, **_columns(_PARQUET.read_schema(file), added[0].path)}
    # Every commit of a run has it, so that no more than the end of the log has to be read.
    actions.append({"metaData": metadata})
    actions += [
        {"remove": {"path": quote(path), "deletionTimestamp": now_ms, "dataChange": True}}
        for path in removed
    ]
    actions += [_add(file, now_ms) for file in added]
    path = _path(table_root, max(versions, default=-1) + 1)
    data = "".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in actions)
    if not files.create(path, data.encode()):
        raise PipelineError(
            f"{path}: another program wrote to this table at the same moment; "
            "the next run completes this one"
        )


def delta_type(kind: Any) -> Any:
    """Return an Arrow type as Delta's JSON has it: a name, or an object of a nested type."""
    if pa.types.is_struct(kind):
        struct: Any = kind
        fields = (struct.field(index) for index in range(struct.num_fields))
        named = [_field(each.name, delta_type(each.type)) for each in fields]
        return {"type": "struct", "fields": named}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": delta_type(kind.value_type), "containsNull": True}
    name = spark_type(kind)
    return _NAMES.get(name, name)


def _field(name: str, kind: Any) -> Action:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _new_metadata(now_ms: int) -> Action:
    return {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "configuration": {},
        "createdTime": now_ms,
    }


def _columns(schema: Any, path: str) -> Action:
    """Return what the metadata says of columns: those of a file, and of its directories."""
    partitions = list(partition_values(path))
    fields = [_field(field.name, delta_type(field.type)) for field in schema]
    fields += [_field(name, PARTITION_TYPES[name]) for name in partitions]
    return {
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": partitions,
    }


def _add(file: AddedFile, now_ms: int) -> Action:
    return {
        "add": {
            "path": quote(file.path),
            "partitionValues": partition_values(file.path),
            "size": file.size_bytes,
            "modificationTime": now_ms,
            "dataChange": True,
            "stats": json.dumps({"numRecords": file.row_count}),
        }
    }


def _versions(files: OutputFiles, table_root: str) -> list[int]:
    names = files.names_in(f"{table_root}/{LOG}")
    stems = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return sorted(int(stem) for stem in stems if len(stem) == VERSION_DIGITS and stem.isdecimal())


def _last_commit(
    files: OutputFiles, table_root: str, versions: Sequence[int]
) -> tuple[int, Action] | None:
    """Return the number of the last run with a commit, and the table's metadata; None without any.

    Other programs may have set the table's properties since; their commits are passed over. They
    may have removed older commits too, that of the last run among them: its number is 0 then.
    Raises PipelineError where no commit that is left has the metadata, and DamagedOutputError for
    a commit that cannot be read.
    """
    run: int | None = None
    metadata: Action | None = None
    for version in reversed(versions):
        path = _path(table_root, version)
        actions = _actions(path, files.read(path) or b"")
        if metadata is None:
            metadata = next((each["metaData"] for each in actions if "metaData" in each), None)
        transactions = [each["txn"] for each in actions if "txn" in each]
        if run is None:
            runs = (each["version"] for each in transactions if each["appId"] == APPLICATION)
            run = next(runs, None)
        if run is not None and metadata is not None:
            return run, metadata
    if metadata is not None:
        return 0, metadata
    if versions:
        raise PipelineError(
            f"{table_root}/{LOG}: another program has removed the commits with the table's "
            "metadata, so nothing can be added to it; name another output directory"
        )
    return None


def _actions(path: str, data: bytes) -> list[Action]:
    """Return the actions of a commit; raises DamagedOutputError for what is not a commit."""
    actions: list[Action] = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            action: object = json.loads(line)
        except ValueError as error:
            raise DamagedOutputError(
                f"{path}: line {number} is no JSON ({error}); {REMEDY}"
            ) from error
        if not isinstance(action, dict):
            raise DamagedOutputError(f"{path}: line {number} is no action of a commit; {REMEDY}")
        actions.append(cast("Action", action))
    return actions


def _path(table_root: str, version: int) -> str:
    return f"{table_root}/{LOG}/{version:0{VERSION_DIGITS}}{SUFFIX}"
