"""Parquet files of one task, staged: each written whole, and its footer read back."""

import posixpath
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet

from kvorum.history import HISTORY_TABLES
from kvorum.spark.arrow_schemas import record_batch
from kvorum.spark.errors import UnreconciledError
from kvorum.spark.pipeline.layout import day_directory
from kvorum.spark.pipeline.output_files import OutputFiles
from kvorum.spark.pipeline.tables import ROW_TYPES

# The hints of pyarrow's module for Parquet are incomplete.
_PARQUET: Any = pyarrow.parquet

ROWS_PER_BATCH: Final = 2048
"""The number of Python rows that become one Arrow batch."""
LOOSE_ROW_BYTES: Final = 1024
"""About what a row of Python values takes."""
HELD_BYTES_MAX: Final = 96 * 1024 * 1024
"""The bytes of rows above which the largest tables are written."""

_Key: TypeAlias = tuple[str, int | None]
"""A table, and a day of it where it is divided into days."""


class StagedFile(NamedTuple):
    """A staged file, and where it goes; both paths are relative to the output.

    `table` is empty for a file that belongs to none. `is_open` is for rows that the next run
    replaces.
    """

    source: str
    target: str
    table: str
    row_count: int
    size_bytes: int
    is_open: bool = False


@dataclass(slots=True)
class Stage:
    """The folder for the files of one attempt of a task.

    `directory` is the run's, relative to `root`. Every attempt has a directory of its own in it: an
    attempt that Spark gave up may still be writing when the next one begins.
    """

    files: OutputFiles
    root: str
    directory: str
    run: int
    attempt: str = field(default_factory=lambda: uuid4().hex)
    staged: list[StagedFile] = field(default_factory=list[StagedFile])

    def add_bytes(self, target: str, data: bytes) -> None:
        """Stage a file that belongs to no table."""
        source = self._source()
        self.files.write(f"{self.root}/{source}", data)
        self.staged.append(StagedFile(source, target, "", 0, len(data)))

    def add_rows(
        self, table: str, folders: str, rows: Sequence[tuple[Any, ...]], *, is_open: bool = False
    ) -> None:
        """Stage rows of another table than that of records, as `add_batches` does."""
        self.add_batches(table, folders, [record_batch(ROW_TYPES[table], rows)], is_open=is_open)

    def add_batches(
        self, table: str, folders: str, batches: Sequence[pa.RecordBatch], *, is_open: bool = False
    ) -> None:
        """Stage batches of one schema as one Parquet file in `folders` of a table's directory.

        Raises `UnreconciledError` where the file does not have that many rows.
        """
        arrow: Any = pa
        rows = arrow.Table.from_batches(batches)
        source = self._source()
        # The number keeps the order of the log, the attempt the names of two tasks apart.
        kind = "open" if is_open else "part"
        name = f"{kind}-{self.run:06}-{len(self.staged):05}-{self.attempt[:12]}.parquet"
        sink = pa.BufferOutputStream()
        _PARQUET.write_table(rows, sink, compression="zstd", store_schema=True)
        data: bytes = sink.getvalue().to_pybytes()
        self.files.write(f"{self.root}/{source}", data)
        with self.files.open(f"{self.root}/{source}") as file:
            written = int(_PARQUET.read_metadata(file).num_rows)
        if written != rows.num_rows:
            raise UnreconciledError(
                f"{self.root}/{source}: {written} rows where {rows.num_rows} were written"
            )
        target = posixpath.join(table, folders, name)
        self.staged.append(StagedFile(source, target, table, written, len(data), is_open))

    def _source(self) -> str:
        return f"{self.directory}/{self.attempt}/{len(self.staged):05}"


def rows_by_table(staged: list[StagedFile]) -> Mapping[str, int]:
    """Return how many rows each table got."""
    counts: Counter[str] = Counter()
    for file in staged:
        if file.table:
            counts[file.table] += file.row_count
    return counts


@dataclass(slots=True)
class _Collected:
    rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    batches: list[pa.RecordBatch] = field(default_factory=list[pa.RecordBatch])
    packed_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        return self.packed_bytes + len(self.rows) * LOOSE_ROW_BYTES


class DayRows:
    """The rows of one cluster, on their way into files; `cluster` is its directory's name.

    What is held is bounded for all tables together; beyond it the largest collections become files.
    """

    def __init__(self, stage: Stage, cluster: str) -> None:
        self._stage = stage
        self._cluster = cluster
        self._collected: dict[_Key, _Collected] = defaultdict(_Collected)
        self._held_bytes = 0

    def add_row(self, table: str, day: int | None, row: tuple[Any, ...]) -> None:
        """Add a row of a history table; `day` is the number of days since 1970."""
        collected = self._collected[table, day]
        collected.rows.append(row)
        self._held_bytes += LOOSE_ROW_BYTES
        if len(collected.rows) >= ROWS_PER_BATCH:
            self._pack(table, collected)
        if self._held_bytes > HELD_BYTES_MAX:
            self._make_room()

    def add_batch(self, table: str, day: int | None, batch: pa.RecordBatch) -> None:
        """Add rows of a table that are in Arrow's form."""
        self._append(self._collected[table, day], batch)
        if self._held_bytes > HELD_BYTES_MAX:
            self._make_room()

    def finish(self) -> None:
        """Write everything that is left."""
        for key in sorted(self._collected, key=lambda key: (key[0], key[1] or -1)):
            self._write(key)

    def _append(self, collected: _Collected, batch: pa.RecordBatch) -> None:
        collected.batches.append(batch)
        collected.packed_bytes += batch.nbytes
        self._held_bytes += batch.nbytes

    def _pack(self, table: str, collected: _Collected) -> None:
        rows, collected.rows = collected.rows, []
        self._held_bytes -= len(rows) * LOOSE_ROW_BYTES
        if rows:
            self._append(collected, record_batch(HISTORY_TABLES[table], rows))

    def _make_room(self) -> None:
        """Write the largest collections, until half of the bound is free."""
        for key in sorted(self._collected, key=lambda key: -self._collected[key].held_bytes):
            if self._held_bytes <= HELD_BYTES_MAX // 2:
                return
            self._write(key)

    def _write(self, key: _Key) -> None:
        table, day = key
        collected = self._collected.pop(key)
        self._pack(table, collected)
        self._held_bytes -= collected.packed_bytes
        self._stage.add_batches(table, f"{self._cluster}/{day_directory(day)}", collected.batches)
