"""A cluster's log, folded as far as it can be: saved history first, then what its replicas have.

A fold begins with a saved history, a snapshot, or nothing. Up to four passes may be needed: from
the saved history; again, where the log is not what was saved; from the reference alone, where the
replicas do not fit together; and once more up to a record that contradicts those before it.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kvorum.history import HISTORY_TABLES, HistoryRow, LogRecord, MetadataHistory
from kvorum.history.errors import ContradictionError, HistoryError, SavedHistoryError
from kvorum.log_files.damage import Damage
from kvorum.log_files.errors import LogFilesError
from kvorum.log_files.find import FoundFiles, LogFile
from kvorum.log_files.ranges import plan_ranges
from kvorum.spark.columnar.range_reader import read_range
from kvorum.spark.errors import (
    DamagedFileError,
    DamagedOutputError,
    PipelineError,
    UnreconciledError,
)
from kvorum.spark.pipeline.cluster_plan import ClusterPlan, FoldBegin
from kvorum.spark.pipeline.cluster_state import Tail
from kvorum.spark.pipeline.layout import day_of
from kvorum.spark.pipeline.log_reading import LogReading, Piece, decoded_records
from kvorum.spark.pipeline.output_files import output_files
from kvorum.spark.pipeline.replicas import ENDLESS, ReadableReplica, begins_of
from kvorum.spark.pipeline.staged_files import DayRows, Stage
from kvorum.spark.pipeline.tables import ErrorRow

_TABLE_AND_TIME: Final[Mapping[type[Any], tuple[str, int]]] = MappingProxyType(
    {
        row_type: (
            name,
            next(
                index
                for index, column in enumerate(row_type._fields)
                if column in {"from_time", "time"}
            ),
        )
        for name, row_type in HISTORY_TABLES.items()
    }
)
"""The table of each type of row, and the index of the column with the time when it began."""

PASSES_MAX: Final = 4
"""The number of times that a log is read if it changes meanwhile."""


class FoldStart(NamedTuple):
    """A history, and the place in the log at which it goes on.

    `pieces` and `snapshot_count` are the records of the snapshot that it begins with.
    """

    begin: FoldBegin
    history: MetadataHistory
    next_offset: int
    tail: Tail | None
    pieces: list[Piece]
    snapshot_count: int


def first_start(
    replicas: Sequence[ReadableReplica], options: Mapping[str, Any], damages: list[Damage] | None
) -> FoldStart:
    """Return where the longest history of the reference begins, or else that of another replica.

    Snapshots that are damaged are passed over, and added to `damages`; where that is None, they
    raise `DamagedFileError`. Raises `LogFilesError` where there is nothing to begin with.
    """
    for readable in replicas:
        for snapshot in begins_of(readable.replica):
            start = _start_at(snapshot, options, damages)
            if start is not None:
                return start
    replica = replicas[0].replica
    raise LogFilesError(
        f"{replica.log_directory}: no whole log and no usable snapshot to begin with"
    )


class _DamagedSnapshotError(Exception):
    """A snapshot whose state cannot be used."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage.text)
        self.damage = damage


def _start_at(
    file: LogFile | None, options: Mapping[str, Any], damages: list[Damage] | None
) -> FoldStart | None:
    if file is None:
        return FoldStart(FoldBegin.LOG, MetadataHistory(), 0, None, [], 0)
    (unit,) = plan_ranges(FoundFiles((file,), frozenset()), range_bytes=max(file.size, 1))
    offset, count = file.offset or 0, 0

    def records() -> Iterator[LogRecord]:
        nonlocal count
        for item in read_range(unit, file_system_options=options):
            if isinstance(item, Damage):
                raise _DamagedSnapshotError(item)
            for record in decoded_records(file.path, [item]):
                if isinstance(record, Damage):
                    raise _DamagedSnapshotError(record)
                count += 1
                yield record

    try:
        history = MetadataHistory.from_snapshot(records(), end_offset=offset, epoch=file.epoch)
    except _DamagedSnapshotError as error:
        found = error.damage
        if damages is None:
            raise DamagedFileError(
                file=found.path, offset=found.first_offset, reason=found.text
            ) from None
        damages.append(found)
        return None
    except ContradictionError as error:
        raise LogFilesError(f"{file.path}: {error}") from error
    return FoldStart(FoldBegin.SNAPSHOT, history, offset, None, [Piece(unit, 0, ENDLESS)], count)


def table_and_day(row: HistoryRow) -> tuple[str, int | None]:
    """Return the table of a row, and the day when it began, in days since 1970."""
    table, time = _TABLE_AND_TIME[type(row)]
    timestamp_ms: Any = row[time]
    return table, day_of(timestamp_ms)


class StoppedError(Exception):
    """A record contradicts those before it, so that the log has no history from there on."""

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.offset = offset
        self.reason = reason


def fold(history: MetadataHistory, reading: LogReading, rows: DayRows) -> int:
    """Add the rows of all records of `reading` to `rows`; return how many are control records.

    Raises `StoppedError` for a record that cannot follow, after which `history` and `rows` are of
    no use, and `UnreconciledError` where records of the files did not get here.
    """
    control = metadata = 0
    begin = history.next_offset
    add, add_row = history.add, rows.add_row
    for record in reading.records():
        try:
            for row in add(record):
                add_row(*table_and_day(row), row)
        except HistoryError as error:
            raise StoppedError(reading.path, record.offset, str(error)) from error
        if record.message.API_KEY is None:
            control += 1
        else:
            metadata += 1
    if not history.next_offset - begin == reading.handed_count == control + metadata:
        raise UnreconciledError(
            f"{reading.path}: {reading.offered_count} records by the headers of batches, "
            f"{reading.withheld_count} behind damage, but {control} control and "
            f"{metadata} metadata records were folded"
        )
    return control


class FoldedLog(NamedTuple):
    """The last pass, after which the history of `start` has all records that `reading` handed out.

    `earlier` read what the log still has before the end of the snapshot that the history begins
    with: these are records for their table, and no part of the history. `replicas` are in the order
    of preference.
    """

    start: FoldStart
    reading: LogReading
    earlier: LogReading
    control_count: int
    stage: Stage
    rows: DayRows
    replicas: tuple[ReadableReplica, ...]
    errors: list[ErrorRow]


class LogFold:
    """The passes over one cluster's log."""

    def __init__(self, plan: ClusterPlan, replicas: tuple[ReadableReplica, ...]) -> None:
        self._plan = plan
        self._run = plan.run
        self._replicas = replicas
        self._usable = replicas
        self._limit = ENDLESS
        self._stopped: list[ErrorRow] = []

    def folded(self) -> FoldedLog:
        """Return the log, folded; raises `LogFilesError` for damage that ends the run."""
        begin = FoldBegin.LOG if self._history_path is None else FoldBegin.SAVED
        for _ in range(PASSES_MAX):
            damages: list[Damage] = []
            start = self._start(begin, damages)
            try:
                folded = self._pass(start, damages)
            except StoppedError as error:
                self._stop_at(error)
                continue
            if not self._is_rewritten(folded):
                return folded
            if begin is FoldBegin.LOG_REWRITTEN:
                self._usable = self._replicas[:1]
            begin = FoldBegin.LOG_REWRITTEN
        raise PipelineError(
            f"{self._replicas[0].replica.log_directory}: the log changed while it was read"
        )

    @property
    def _history_path(self) -> str | None:
        state = self._plan.state
        return None if state is None else state.history

    def _start(self, begin: FoldBegin, damages: list[Damage]) -> FoldStart:
        for each in self._replicas:
            each.holes.clear()
        found = damages if self._run.keeps_errors else None
        if begin is FoldBegin.SAVED:
            saved = self._saved_start()
            starts = [each.replica.start_offset for each in self._replicas]
            if any(start is None or start <= saved.next_offset for start in starts):
                return saved
            # Every log begins after what was saved, so a snapshot has to stand in.
            begin = FoldBegin.LOG_STARTS_LATER
        start = first_start(self._usable, self._run.file_system_options, found)
        return start if begin is FoldBegin.LOG else start._replace(begin=begin)

    def _saved_start(self) -> FoldStart:
        state, path = self._plan.state, self._history_path
        assert state is not None
        files = output_files(self._run.root, self._run.file_system_options)
        data = files.read(f"{self._run.root}/{path}")
        try:
            if data is None:
                raise SavedHistoryError("the file is gone")
            history = MetadataHistory.from_bytes(data)
        except SavedHistoryError as error:
            raise DamagedOutputError(f"{self._run.root}/{path}: {error}: use --rebuild") from error
        return FoldStart(FoldBegin.SAVED, history, history.next_offset, state.tail, [], 0)

    def _pass(self, start: FoldStart, damages: list[Damage]) -> FoldedLog:
        stage = self._run.new_stage()
        rows = DayRows(stage, self._plan.directory)
        reading = self._reading(start.next_offset, start.tail, self._limit)
        earlier = self._read_earlier(start)
        control_count = fold(start.history, reading, rows)
        found = (*damages, *earlier.damages, *reading.damages)
        errors = [_error_row(self._run.number, each) for each in found] + self._stopped
        return FoldedLog(
            start, reading, earlier, control_count, stage, rows, self._replicas, errors
        )

    def _reading(self, offset: int, tail: Tail | None, limit: int) -> LogReading:
        return LogReading(
            self._usable,
            self._run.file_system_options,
            offset,
            tail,
            limit=limit,
            is_failfast=not self._run.keeps_errors,
        )

    def _read_earlier(self, start: FoldStart) -> LogReading:
        """Read the records of the log that the snapshot of `start` stands in for."""
        first = self._usable[0].replica.start_offset
        is_covered = first is not None and bool(start.pieces)
        begin = min(first or 0, start.next_offset) if is_covered else start.next_offset
        earlier = self._reading(begin, None, start.next_offset)
        while begin < start.next_offset:
            for _ in earlier.records():
                pass
            # These records need no others before them, so damage hides only itself.
            begin = min(each.next_after(earlier.next_offset) for each in self._usable)
            earlier.next_offset, earlier.tail = begin, None
        return earlier

    def _stop_at(self, error: StoppedError) -> None:
        if not self._run.keeps_errors:
            raise LogFilesError(str(error)) from error
        self._limit = error.offset
        number, path, offset, reason = self._run.number, error.path, error.offset, error.reason
        self._stopped = [ErrorRow(number, path, offset, None, "contradiction", reason)]

    def _is_rewritten(self, folded: FoldedLog) -> bool:
        """Return whether the log is not the one whose end was saved, or not one log at all."""
        reading, start = folded.reading, folded.start
        if reading.is_tail_gone:
            return True
        if start.begin is not FoldBegin.SAVED or reading.next_offset > start.next_offset:
            return False
        end = self._replicas[0].end_offset
        reached = reading.highest_offset if end == ENDLESS else end
        return 0 < reached < start.next_offset


def _error_row(run: int, damage: Damage) -> ErrorRow:
    return ErrorRow(
        run=run,
        path=damage.path,
        offset=damage.first_offset,
        last_offset=damage.last_offset,
        kind=damage.kind.value.replace(" ", "_"),
        reason=damage.text,
    )
