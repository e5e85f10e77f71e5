"""The formats of tables: what each adds to the Parquet files."""

from __future__ import annotations

from kvorum.spark.pipeline import delta_log
from kvorum.spark.pipeline.errors import PipelineError
from kvorum.spark.pipeline.request import TableFormat
from kvorum.spark.pipeline.table_commit import AddCommit


def commit_of(table_format: TableFormat) -> AddCommit | None:
    """Return what adds a run's commit to a table; None where the files are all there is.

    Raises `PipelineError` where a package that the format needs is not installed.
    """
    if table_format is TableFormat.DELTA:
        return delta_log.add_commit
    if table_format is TableFormat.PARQUET:
        return None
    try:
        from kvorum.spark.pipeline import iceberg_commit  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise PipelineError(
            f"--format {table_format}: {error}: install kvorum with its extra 'iceberg'"
        ) from error
    return iceberg_commit.add_commit
