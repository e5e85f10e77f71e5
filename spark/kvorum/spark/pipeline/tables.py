"""All tables of the output by name, and the rows about the pipeline itself."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from kvorum.history import HISTORY_TABLES, STATE_TABLES
from kvorum.history.columns import Int32, Int64, TimestampMs

RECORDS: Final = "records"
RUNS: Final = "runs"


class ReplicaDivergenceRow(NamedTuple):
    """Offsets at which a replica differs from the one that the tables are made from."""

    node_id: Int32 | None
    log_directory: str
    reference_node_id: Int32 | None
    reference_log_directory: str
    kind: str
    is_divergence: bool
    from_offset: Int64
    to_offset: Int64
    epoch: Int32 | None
    reference_epoch: Int32 | None


class ErrorRow(NamedTuple):
    """A place in a file that could not be read, or a record that cannot follow those before it."""

    run: Int64
    path: str
    offset: Int64
    last_offset: Int64 | None
    kind: str
    reason: str


class RowCountColumn(NamedTuple):
    """The number of rows that a run wrote into a table."""

    table_name: str
    row_count: Int64


class RunRow(NamedTuple):
    """The work of one run for one cluster."""

    run: Int64
    started_at: TimestampMs
    duration_ms: Int64
    node_id: Int32 | None
    log_directory: str
    begin: str
    from_offset: Int64
    to_offset: Int64
    record_count: Int64
    control_record_count: Int64
    error_count: Int64
    is_tail_torn: bool
    row_counts: tuple[RowCountColumn, ...]


OwnRow: TypeAlias = ReplicaDivergenceRow | ErrorRow | RunRow
OWN_TABLES: Final[Mapping[str, type[OwnRow]]] = MappingProxyType(
    {"replica_divergence": ReplicaDivergenceRow, "errors": ErrorRow, "runs": RunRow}
)
"""The tables that are about the replicas and the runs, by name."""


ROW_TYPES: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {**HISTORY_TABLES, **STATE_TABLES, **OWN_TABLES}
)
"""The type of the rows of every table but that of records."""
ALL_TABLES: Final = (RECORDS, *ROW_TYPES)
