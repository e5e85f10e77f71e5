"""The directory of tables that the pipeline writes: its clusters, and the rows of each.

DIR/<table>/cluster_id=<id>/day=<YYYY-MM-DD>/*.parquet     tables of what happened
DIR/<table>/cluster_id=<id>/*.parquet                      tables of the state at the end
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset

from kvorum.spark.arrow_schemas import arrow_schema
from kvorum.spark.pipeline.delta_log import LOG
from kvorum.spark.pipeline.journal import DONE_SUFFIX, JOURNAL_SUFFIX
from kvorum.spark.pipeline.layout import COMMITS, ICEBERG_METADATA
from kvorum.spark.pipeline.tables import ROW_TYPES
from kvorum.spark.report.conditions import Condition
from kvorum.spark.report.rows import Rows
from kvorum.spark.report.table_files import TableFiles, TablesError

_CLUSTER: Final = "cluster_id="
_NAMES_MAX: Final = 5
_REPEATED: Final = frozenset({"topic_name", "topic_id"})
"""Texts that many rows have in common: they are read as numbers into a list of texts."""
_READING: Final = MappingProxyType(
    {"batch_size": 65_536, "batch_readahead": 2, "fragment_readahead": 1}
)
"""The bytes that are read ahead: the default is much more than a condition lets through."""

# The stubs of pyarrow do not know the types of columns.
_dataset: Any = pyarrow.dataset


class NothingCoveredError(TablesError):
    """The tables of a cluster cover nothing of the time that is asked for."""


class ClusterTables:
    """The tables of one cluster; one that was never written has no rows."""

    def __init__(self, cluster_id: str, files: TableFiles, directories: Mapping[str, str]) -> None:
        self.cluster_id = cluster_id
        self._files = files
        self._directories = directories

    def read(self, table: str, columns: Sequence[str], where: Condition | None = None) -> Rows:
        """Return columns of a table, of the rows that `where` describes.

        Raises `TablesError` for a file that cannot be read, and for one that lacks a value which
        every row has.
        """
        schema: Any = arrow_schema(ROW_TYPES[table])
        directory = self._directories.get(table)
        if directory is None:
            wanted: list[Any] = [schema.field(name) for name in columns]
            return Rows(pa.schema(wanted).empty_table())
        stored = pa.schema([_as_read(field) for field in schema])
        with self._files.errors_named(directory, "cannot be read as Parquet"):
            found = _dataset.dataset(
                self._files.path(directory),
                schema=stored,
                format=_format(table),
                filesystem=self._files.system,
            ).to_table(columns=list(columns), filter=where, **_READING)
            found = found.unify_dictionaries()
        for name in columns:
            if found.column(name).null_count and not schema.field(name).nullable:
                raise TablesError(
                    f"{self._files.full_name(directory)}: a file has no column {name!r}: another "
                    "release wrote it: write the tables anew with kvorum pipeline --rebuild"
                )
        return Rows(found)


class TablesDirectory:
    """The tables in a directory, of this machine or of a file system of fsspec."""

    def __init__(
        self, directory: str | Path, file_system_options: Mapping[str, Any] | None = None
    ) -> None:
        """Find the tables; `file_system_options` are fsspec's.

        Raises `TablesError` for a directory that has none of them, or that cannot be listed, and
        while a run is moving its files in.
        """
        self._files = TableFiles(str(directory), file_system_options or {})
        if not self._files.is_directory(""):
            raise TablesError(f"{directory}: no such directory")
        self._commits = self._finished_commits()
        self._clusters: dict[str, dict[str, str]] = {}
        found = set(self._files.directories_in(""))
        # Of tables of other formats that the pipeline wrote, the files are those of Parquet tables.
        is_ours = COMMITS in found
        for table in found.intersection(ROW_TYPES):
            for name in self._cluster_directories(table, is_ours=is_ours):
                cluster_id = unquote(name.removeprefix(_CLUSTER))
                self._clusters.setdefault(cluster_id, {})[table] = f"{table}/{name}"
        # A foreign directory may have a name of ours, such as topics or errors.
        if not self._clusters and not is_ours:
            raise TablesError(
                f"{directory}: has none of the tables of kvorum pipeline ({_some(ROW_TYPES)})"
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
        return ClusterTables(cluster_id, self._files, found)

    def demand_unchanged(self) -> None:
        """Raise `TablesError` where a run has changed the tables since they were found."""
        if self._finished_commits() != self._commits:
            raise TablesError(
                f"{self._files.full_name('')}: a run of kvorum pipeline changed the tables while "
                "they were read: try again"
            )

    def _finished_commits(self) -> frozenset[str]:
        """Return the runs that are committed; raises `TablesError` where one is not completed."""
        self._files.forget_listings()
        names = self._files.files_in(COMMITS)
        committed = _stems(names, JOURNAL_SUFFIX)
        for run in sorted(committed - _stems(names, DONE_SUFFIX)):
            raise TablesError(
                f"{self._files.full_name('')}: run {run} is committed, but its files are not all "
                "in their places: wait for it, or complete it with kvorum pipeline"
            )
        return committed

    def _cluster_directories(self, table: str, *, is_ours: bool) -> list[str]:
        found = self._files.directories_in(table)
        for trace, other in ((LOG, "Delta"), (ICEBERG_METADATA, "Iceberg")):
            if trace in found and not is_ours:
                raise TablesError(
                    f"{self._files.full_name(table)}: is a table of {other}; the report reads "
                    "Parquet tables"
                )
        return [name for name in found if name.startswith(_CLUSTER)]


def _stems(names: Iterable[str], suffix: str) -> frozenset[str]:
    return frozenset(name.removesuffix(suffix) for name in names if name.endswith(suffix))


def _as_read(field: Any) -> Any:
    """Return the field of a stored column: null where an older file does not have it."""
    if field.name in _REPEATED:
        return pa.field(field.name, pa.dictionary(pa.int32(), pa.string()))
    return field.with_nullable(True)


def _format(table: str) -> Any:
    columns = [name for name in arrow_schema(ROW_TYPES[table]).names if name in _REPEATED]
    return _dataset.ParquetFileFormat(
        read_options=_dataset.ParquetReadOptions(dictionary_columns=columns)
    )


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_NAMES_MAX]) + (", …" if len(listed) > _NAMES_MAX else "")
