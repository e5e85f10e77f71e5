"""The stream over growing directories, as Spark calls it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.entry_reader import BatchOrDamage
from kvorum.spark.columnar.range_reader import read_range
from kvorum.spark.errors import OptionError
from kvorum.spark.metadata_source.columns import Column
from kvorum.spark.metadata_source.filters import NO_FILTER
from kvorum.spark.metadata_source.query import Query
from kvorum.spark.metadata_source.range_rows import arrow_rows
from kvorum.spark.source_options import FileOptions
from kvorum.spark.streaming.directory_planner import (
    DirectoryPlanner,
    LogPlace,
    Unit,
    from_checkpoint,
    to_checkpoint,
)
from kvorum.spark.streaming.options import Starting, StreamOptions


class UnitPartition(InputPartition):
    """Work of one task."""

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit.file.path)
        self.unit = unit


class DirectoryStreamReader(DataSourceStreamReader):
    """A stream of the records that are added to logs below directories.

    Spark calls `read` in executors, on a copy; everything else in one process beside the driver.
    Raises `OptionError` for a stream that is to start at an offset: there may be many logs.
    """

    def __init__(
        self, options: StreamOptions, files: FileOptions, columns: tuple[Column, ...]
    ) -> None:
        if not isinstance(options.starting, Starting):
            raise OptionError(
                f"option 'startingOffsets' is {options.starting}: with 'path' it is earliest or "
                "latest, for there may be many logs"
            )
        self._starting = options.starting
        self._files = files
        self._columns = columns
        self._planner = DirectoryPlanner(files, offsets_max=options.offsets_max)
        self._begin: dict[str, LogPlace] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the stream begins without a checkpoint.

        Spark asks this after `latestOffset`, so it is found out once.
        """
        return to_checkpoint(self._beginning())

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the next micro-batch ends."""
        return to_checkpoint(self._planner.ends(self._beginning()))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch, and remember where the next one begins.

        Spark also calls this after a restart, with the checkpoint's last end twice.
        """
        begin, until = from_checkpoint(start), from_checkpoint(end)
        self._begin = until
        if begin == until:
            return []
        return [UnitPartition(unit) for unit in self._planner.units(begin, until)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task as Arrow batches."""
        if not isinstance(partition, UnitPartition):
            raise TypeError(f"not a partition of this source: {partition!r}")
        options = self._files.search.file_system_options
        query = Query(self._columns, NO_FILTER, self._files.mode, options)
        yield from arrow_rows(partition.unit.file, _batches(partition.unit, query), query)

    def _beginning(self) -> dict[str, LogPlace]:
        if self._begin is None:
            is_latest = self._starting is Starting.LATEST
            everything = DirectoryPlanner(self._files, offsets_max=None)
            self._begin = everything.ends({}) if is_latest else {}
        return self._begin


def _batches(unit: Unit, query: Query) -> Iterator[BatchOrDamage]:
    if unit.damage is not None:
        yield unit.damage
    if unit.range is None:
        return
    found = None
    for item in read_range(unit.range, file_system_options=query.file_system_options):
        if not isinstance(item, Damage):
            found = item.position, item.crc
        yield item
    if unit.last_batch is not None and found != unit.last_batch:
        end = unit.range.end_offset or 0
        reason = "the log was truncated since the work was planned"
        yield Damage(DamageKind.DAMAGED, unit.file.path, unit.last_batch[0], end, end - 1, reason)
