"""Tables as the pipeline lays them out, written from the fold of a log or from rows."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet

from kvorum.history import HISTORY_TABLES, LogRecord, MetadataHistory
from kvorum.spark.arrow_schemas import record_batch
from kvorum.spark.pipeline.tables import ROW_TYPES
from kvorum.spark.report.cluster_report import ClusterFacts, cluster_report
from kvorum.spark.report.tables_directory import ClusterTables, TablesDirectory
from kvorum.spark.report.written_report import write_report

# The stubs of pyarrow do not know the types of columns.
parquet: Any = pyarrow.parquet

TYPES: Mapping[str, Any] = ROW_TYPES
NAMES = {row_type: name for name, row_type in TYPES.items()}
CLUSTER = "c1"


def write_log(directory: Path, records: Iterable[LogRecord], cluster_id: str = CLUSTER) -> None:
    write_rows(directory, rows_of(records), cluster_id)


def rows_of(records: Iterable[LogRecord]) -> list[Any]:
    history = MetadataHistory()
    return [*history.add_all(records), *history.open_rows(), *history.end_state()]


def write_rows(directory: Path, rows: Iterable[Any], cluster_id: str = CLUSTER) -> None:
    by_table: dict[tuple[str, str | None], list[Any]] = defaultdict(list)
    for row in rows:
        table = NAMES[type(row)]
        by_table[table, day_of(row) if table in HISTORY_TABLES else None].append(row)
    for (table, day), found in by_table.items():
        folder = directory / table / f"cluster_id={quote(cluster_id, safe='')}"
        if day is not None:
            folder /= f"day={day}"
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / f"part-{len(list(folder.iterdir()))}.parquet", TYPES[table], found)


def write_file(path: Path, row_type: Any, rows: Sequence[Any]) -> None:
    table = pa.Table.from_batches([record_batch(row_type, rows)])
    # The old format of timestamps is Spark's default.
    parquet.write_table(table, path, use_deprecated_int96_timestamps=True)


def day_of(row: Any) -> str:
    time_ms: int = row.from_time if hasattr(row, "from_time") else row.time
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d")


def cluster_tables(
    directory: Path, records: Iterable[LogRecord], cluster_id: str = CLUSTER
) -> ClusterTables:
    write_log(directory, records, cluster_id)
    return TablesDirectory(directory).cluster(cluster_id)


def facts_of(
    tables: ClusterTables, *, since_ms: int | None = None, until_ms: int | None = None
) -> ClusterFacts:
    """Return the facts of a cluster that has a history."""
    facts = cluster_report(tables, since_ms=since_ms, until_ms=until_ms).facts
    assert facts is not None
    return facts


def written_index(folder: Path) -> str:
    """Write the pages of the tables below a folder, and return the index."""
    *_, index = write_report(TablesDirectory(folder / "tables"), folder / "pages")
    return index.read_text("utf-8")
