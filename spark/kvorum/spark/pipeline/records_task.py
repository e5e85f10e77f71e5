"""The task for the table of records: the rows of pieces of files, by day."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kvorum.log_files.errors import LogFilesError
from kvorum.spark.conditions import Condition
from kvorum.spark.damage_modes import Mode
from kvorum.spark.errors import SparkSliceError
from kvorum.spark.metadata_source.columns import DAMAGE, DEFAULT_COLUMNS, JSON_COLUMN, columns_named
from kvorum.spark.metadata_source.filters import RowFilter
from kvorum.spark.metadata_source.query import Query
from kvorum.spark.metadata_source.range_rows import arrow_batches
from kvorum.spark.pipeline.cluster_plan import FailedTask, PieceOutcome, PiecePlan, RunPlan
from kvorum.spark.pipeline.layout import DAY_MS
from kvorum.spark.pipeline.log_reading import Piece
from kvorum.spark.pipeline.staged_files import DayRows
from kvorum.spark.pipeline.tables import RECORDS

# The directory names the cluster, and damage is in a table of its own.
_LEFT_OUT: Final = frozenset({"cluster_id", DAMAGE})
_KEPT: Final = tuple(column for column in DEFAULT_COLUMNS if column.name not in _LEFT_OUT)
_DAY_US: Final = DAY_MS * 1000


def write_piece(plan: PiecePlan) -> PieceOutcome | FailedTask:
    """Stage the records of one piece."""
    run = plan.run
    try:
        stage = run.new_stage()
        rows = DayRows(stage, plan.directory)
        count = write_records([plan.piece], rows, run)
        rows.finish()
    except (SparkSliceError, LogFilesError, OSError) as error:
        return FailedTask(str(error) or type(error).__name__)
    return PieceOutcome(plan.cluster_id, count, stage.staged)


def write_records(pieces: Sequence[Piece], rows: DayRows, run: RunPlan) -> int:
    """Add the records of `pieces` to `rows`; return how many there were."""
    written = (*_KEPT, JSON_COLUMN) if run.with_json else _KEPT
    columns = (*written, *columns_named([DAMAGE]))
    count = 0
    for piece in pieces:
        offsets = Condition(low=piece.first_offset, high=piece.end_offset - 1)
        row_filter = RowFilter({"offset": offsets})
        query = Query(columns, row_filter, Mode.PERMISSIVE, run.file_system_options)
        for batch in arrow_batches(piece.unit, query):
            for day, part in _by_day(sound_rows(batch, piece)):
                rows.add_batch(RECORDS, day, part)
                count += part.num_rows
    return count


def sound_rows(batch: Any, piece: Piece) -> Any:
    """Return the rows of the piece, without those that stand for damage."""
    damage = batch.schema.get_field_index(DAMAGE)
    offsets = batch.column("offset").to_numpy(zero_copy_only=False)
    kept = (offsets >= piece.first_offset) & (offsets < piece.end_offset)
    kept &= ~batch.column(damage).is_valid().to_numpy(zero_copy_only=False)
    batch = batch.drop_columns([DAMAGE])
    return batch if kept.all() else batch.filter(pa.array(kept))


def _by_day(batch: Any) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """Yield the rows of each day; the order of a day's rows is that of the log."""
    if not batch.num_rows:
        return
    times: Any = batch.column("timestamp").cast(pa.int64()).fill_null(-1)
    days = times.to_numpy(zero_copy_only=False) // _DAY_US
    found: list[int] = np.unique(days).tolist()
    for day in found:
        part = batch if len(found) == 1 else batch.filter(pa.array(days == day))
        yield (None if day < 0 else day), part
