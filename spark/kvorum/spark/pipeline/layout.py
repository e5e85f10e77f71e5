"""The layout of an output: tables by cluster and day, and the files that belong to runs.

    <output>/<table>/cluster_id=X/day=YYYY-MM-DD/*.parquet   what happened, and records
    <output>/<table>/cluster_id=X/*.parquet                  the state, divergence, errors, runs
    <output>/<table>/_delta_log/*.json                       with --format delta: the table's log
    <output>/<table>/metadata/*                              with --format iceberg: its metadata
    <output>/_state/cluster_id=X/                            what the next run goes on from
    <output>/_commits/N.json, N.done                         the journal of each run
    <output>/_staging/N-*/                                   files of a run that is not committed
    <output>/_lock                                           held while a run is going on

Names that begin with an underscore belong to no table; Spark and pyarrow skip them.
Formats with a log or metadata of their own take the changes of a table from a run as one value.
"""

import posixpath
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from kvorum.spark.arrow_types import is_shown
from kvorum.spark.pipeline.output_files import OutputFiles

STATE: Final = "_state"
COMMITS: Final = "_commits"
STAGING: Final = "_staging"
LOCK: Final = "_lock"
ICEBERG_METADATA: Final = "metadata"
"""In each table; the name is the specification's."""
HISTORY_FILE: Final = "history"
CLUSTER_FILE: Final = "cluster.json"
NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name of a missing value in a directory's name, which Spark and pyarrow read as null."""
DAY_MS: Final = 86_400_000
_EPOCH: Final = date(1970, 1, 1).toordinal()


def cluster_directory(cluster_id: str) -> str:
    """Return the name of a cluster's directory in each table."""
    return f"cluster_id={quote(cluster_id, safe='')}"


def day_directory(day: int | None) -> str:
    """Return the name of a day's directory; `day` is the number of days since 1970, in UTC."""
    return f"day={NO_DAY}" if day is None else f"day={date.fromordinal(_EPOCH + day).isoformat()}"


def day_of(timestamp_ms: int) -> int | None:
    """Return the number of days since 1970; None for a time that no column holds."""
    return timestamp_ms // DAY_MS if is_shown(timestamp_ms) else None


class AddedFile(NamedTuple):
    """A file of a table; `path` is relative to the table's directory."""

    path: str
    size_bytes: int
    row_count: int


class TableChange(NamedTuple):
    """The files that a run adds to a table, which are in their places, and those that it removes.

    All paths are relative to the table's directory.
    """

    run: int
    added: Sequence[AddedFile]
    removed: Sequence[str]
    now_ms: int


AddCommit: TypeAlias = Callable[[OutputFiles, str, TableChange], None]
"""Adds a run's commit to a table, unless the run has done so before; the text is its directory.

Raises `PipelineError` where another program writes to the table at the same moment.
"""


def partition_values(path: str) -> dict[str, str | None]:
    """Return the columns that the directories of a path name, as Hive names them."""
    values: dict[str, str | None] = {}
    for folder in posixpath.dirname(path).split("/"):
        name, _, value = folder.partition("=")
        values[name] = None if value == NO_DAY else unquote(value)
    return values
