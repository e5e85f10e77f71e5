"""Rows by table and day, collected until there are enough for a file.

What is held is bounded for all tables together; beyond it the largest collections become files.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa

from kvorum.spark.history import HISTORY_TABLES
from kvorum.spark.history.arrow_schemas import record_batch
from kvorum.spark.pipeline.layout import day_directory
from kvorum.spark.pipeline.staged_files import Stage

ROWS_PER_BATCH: Final = 2048
LOOSE_ROW_BYTES: Final = 1024
"""About what a row of Python values takes."""
HELD_BYTES_MAX: Final = 96 * 1024 * 1024

_Key: TypeAlias = tuple[str, int | None]


@dataclass(slots=True)
class _Collected:
    rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    batches: list[pa.RecordBatch] = field(default_factory=list[pa.RecordBatch])
    packed_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        return self.packed_bytes + len(self.rows) * LOOSE_ROW_BYTES


class DayRows:
    """The rows of one cluster, on their way into files; `cluster` is its directory's name."""

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
        by_size = sorted(self._collected, key=lambda key: -self._collected[key].held_bytes)
        for key in by_size:
            if self._held_bytes <= HELD_BYTES_MAX // 2:
                return
            self._write(key)

    def _write(self, key: _Key) -> None:
        table, day = key
        collected = self._collected.pop(key)
        self._pack(table, collected)
        self._held_bytes -= collected.packed_bytes
        folders = f"{self._cluster}/{day_directory(day)}"
        self._stage.add_batches(table, folders, collected.batches)
