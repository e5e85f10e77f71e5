"""The directory of tables that the pipeline writes: its clusters, and the rows of each.

DIR/<table>/cluster_id=<id>/day=<YYYY-MM-DD>/*.parquet     tables of what happened
DIR/<table>/cluster_id=<id>/*.parquet                      tables of the state at the end
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset

from kvorum.spark.errors import SparkSliceError
from kvorum.spark.history import HISTORY_TABLES, STATE_TABLES
from kvorum.spark.history.arrow_schemas import arrow_schema
from kvorum.spark.report.conditions import Condition
from kvorum.spark.report.rows import Rows

_ROW_TYPES: Final = MappingProxyType({**HISTORY_TABLES, **STATE_TABLES})
_CLUSTER: Final = "cluster_id="
_REPEATED: Final = frozenset({"topic_name", "topic_id"})
"""Texts that many rows have in common: they are read as numbers into a list of texts."""
_READING: Final = MappingProxyType(
    {"batch_size": 65_536, "batch_readahead": 2, "fragment_readahead": 1}
)
"""How much is read ahead: by default much more than a condition lets through is in memory."""

# The stubs of pyarrow do not know the types of columns.
_dataset: Any = pyarrow.dataset


class TablesError(SparkSliceError):
    """A directory without the tables, or with tables that cannot be read."""


class NothingCoveredError(TablesError):
    """The tables of a cluster cover nothing of the time that is asked for."""


class ClusterTables:
    """The tables of one cluster; one that was never written has no rows."""

    def __init__(self, cluster_id: str, directories: dict[str, Path]) -> None:
        self.cluster_id = cluster_id
        self._directories = directories

    def read(self, table: str, columns: Sequence[str], where: Condition | None = None) -> Rows:
        """Return columns of a table, of the rows that `where` describes.

        Raises `TablesError` for a file that cannot be read.
        """
        schema: Any = arrow_schema(_ROW_TYPES[table])
        directory = self._directories.get(table)
        if directory is None:
            wanted: list[Any] = [schema.field(name) for name in columns]
            return Rows(pa.schema(wanted).empty_table())
        stored = pa.schema([_as_read(field) for field in schema])
        try:
            rows = _dataset.dataset(directory, schema=stored, format=_format(table))
            found = rows.to_table(columns=list(columns), filter=where, **_READING)
            return Rows(found.unify_dictionaries())
        except (pa.ArrowException, OSError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise TablesError(f"{directory}: cannot be read as Parquet: {reason}") from error


class TablesDirectory:
    """The tables in a local directory."""

    def __init__(self, directory: Path) -> None:
        """Find the tables; raises `TablesError` for a directory that has none of them."""
        if not directory.is_dir():
            raise TablesError(f"{directory}: no such directory")
        self._clusters: dict[str, dict[str, Path]] = {}
        for table in _ROW_TYPES:
            for path in _cluster_directories(directory / table):
                cluster_id = unquote(path.name.removeprefix(_CLUSTER))
                self._clusters.setdefault(cluster_id, {})[table] = path
        if not self._clusters and not _table_directories(directory):
            raise TablesError(
                f"{directory}: has none of the tables of kvorum pipeline ({_some(_ROW_TYPES)})"
            )

    @property
    def cluster_ids(self) -> list[str]:
        """The clusters of which there are rows, in the order of their ids."""
        return sorted(self._clusters)

    def cluster(self, cluster_id: str) -> ClusterTables:
        """Return the tables of a cluster; raises `TablesError` for one that is in no table."""
        found = self._clusters.get(cluster_id)
        if found is None:
            known = _some(self.cluster_ids) or "none"
            raise TablesError(f"cluster {cluster_id!r} is in no table; the clusters are: {known}")
        return ClusterTables(cluster_id, found)


def _as_read(field: Any) -> Any:
    """Return the field of a stored column: null where an older file does not have it."""
    if field.name in _REPEATED:
        return pa.field(field.name, pa.dictionary(pa.int32(), pa.string()))
    return field.with_nullable(True)


def _format(table: str) -> Any:
    columns = [name for name in arrow_schema(_ROW_TYPES[table]).names if name in _REPEATED]
    return _dataset.ParquetFileFormat(
        read_options=_dataset.ParquetReadOptions(dictionary_columns=columns)
    )


def _cluster_directories(table: Path) -> list[Path]:
    if not table.is_dir():
        return []
    for trace, other in (("_delta_log", "Delta"), ("metadata", "Iceberg")):
        if (table / trace).is_dir():
            raise TablesError(f"{table}: is a table of {other}; the report reads Parquet tables")
    return [path for path in table.iterdir() if path.name.startswith(_CLUSTER) and path.is_dir()]


def _table_directories(directory: Path) -> list[Path]:
    return [directory / name for name in _ROW_TYPES if (directory / name).is_dir()]


def _some(names: Iterable[str], count_max: int = 5) -> str:
    """Return the first of some names as text."""
    listed = list(names)
    more = ", …" if len(listed) > count_max else ""
    return ", ".join(listed[:count_max]) + more
