"""The request of a user for a run, and the report of the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Any, Final

from kvorum.log_files.find import METADATA_SEARCH, Identity, Search

INLINE_BYTES_MAX: Final = 8 * 1024 * 1024
"""For less, a second job of Spark's costs more than it saves."""


@unique
class TableFormat(StrEnum):
    """The form of the tables: directories of Parquet files, or the same with more beside them."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """Which logs go where, and how.

    `inputs` are paths as the source ``kvorum-metadata`` takes them, `cluster_id` is that of files
    without a meta.properties file. `is_rebuild` replaces the tables of every cluster of the input.
    Records of larger logs than `inline_bytes_max` are written by tasks of their own.
    `file_system_options` are fsspec's, for inputs and output.
    """

    inputs: tuple[str, ...]
    output: str
    with_json: bool = False
    keeps_errors: bool = False
    is_rebuild: bool = False
    table_format: TableFormat = TableFormat.PARQUET
    cluster_id: str | None = None
    inline_bytes_max: int = INLINE_BYTES_MAX
    file_system_options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def search(self) -> Search:
        """The files that are searched at the inputs."""
        return METADATA_SEARCH._replace(
            default_identity=Identity(self.cluster_id), file_system_options=self.file_system_options
        )


@dataclass(frozen=True, slots=True)
class PipelineReport:
    """The work of a run.

    `record_count` counts the records of the logs that were new, `row_counts` the rows in new files
    of each table. `rebuilt` are clusters whose log was not the one of the run before, with why.
    """

    number: int
    cluster_count: int
    changed_count: int
    record_count: int = 0
    row_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    error_count: int = 0
    rebuilt: Mapping[str, str] = field(default_factory=dict[str, str])
    duration_s: float = 0.0
