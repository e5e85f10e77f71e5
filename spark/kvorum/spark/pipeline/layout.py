"""The layout of an output: tables by cluster and day, and the files that belong to runs.

    <output>/<table>/cluster_id=X/day=YYYY-MM-DD/*.parquet   what happened, and records
    <output>/<table>/cluster_id=X/*.parquet                  the state, divergence, errors, runs
    <output>/<table>/_delta_log/*.json                       with --format delta: the table's log
    <output>/<table>/metadata/*                              with --format iceberg: its metadata
    <output>/_state/cluster_id=X/                            what the next run goes on from
    <output>/_commits/N.json, N.done                         the journal of each run
    <output>/_staging/N-*/                                   files of a run that is not committed
    <output>/_lock                                           held while a run is going on

Names that begin with an underscore are none of the tables'; Spark and pyarrow skip them.
"""

from __future__ import annotations

from datetime import date
from typing import Final
from urllib.parse import quote

from kvorum.spark.arrow_types import TIMESTAMP_MS_MAX

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
    if day is None:
        return f"day={NO_DAY}"
    return f"day={date.fromordinal(_EPOCH + day).isoformat()}"


def day_of(timestamp_ms: int) -> int | None:
    """Return the number of days since 1970; None for a time that no column holds."""
    return timestamp_ms // DAY_MS if 0 <= timestamp_ms <= TIMESTAMP_MS_MAX else None
