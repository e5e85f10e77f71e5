"""Parquet files of one task, staged: each written whole, and its footer read back."""

import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet

from kvorum.spark.errors import UnreconciledError
from kvorum.spark.history.arrow_schemas import record_batch
from kvorum.spark.pipeline.output_files import OutputFiles
from kvorum.spark.pipeline.tables import ROW_TYPES

# The hints of pyarrow's module for Parquet are incomplete.
_PARQUET: Any = pyarrow.parquet


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
        batch = record_batch(ROW_TYPES[table], rows)
        self.add_batches(table, folders, [batch], is_open=is_open)

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
