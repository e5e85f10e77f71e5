"""The task for one cluster: its log folded into rows, the rows into staged files."""

import time
from collections import defaultdict
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from kvorum.history import HISTORY_TABLES, STATE_TABLES
from kvorum.history.errors import HistoryError
from kvorum.log_files.errors import LogFilesError
from kvorum.spark.errors import SparkSliceError, UnreconciledError
from kvorum.spark.pipeline.cluster_plan import ClusterOutcome, ClusterPlan, FailedTask, FoldBegin
from kvorum.spark.pipeline.cluster_state import ClusterState
from kvorum.spark.pipeline.divergence import by_preference, divergence_rows
from kvorum.spark.pipeline.folded_log import FoldedLog, LogFold, table_and_day
from kvorum.spark.pipeline.layout import CLUSTER_FILE, HISTORY_FILE, STATE, day_directory, day_of
from kvorum.spark.pipeline.log_reading import Piece
from kvorum.spark.pipeline.records_task import write_records
from kvorum.spark.pipeline.replicas import Replica
from kvorum.spark.pipeline.tables import ErrorRow

DIVERGENCE: Final = "replica_divergence"
ERRORS: Final = "errors"
_STATE_TABLE: Final = MappingProxyType({kind: name for name, kind in STATE_TABLES.items()})


def fold_cluster(plan: ClusterPlan) -> ClusterOutcome | FailedTask:
    """Fold what is new of a cluster, and stage the files of its tables."""
    started = time.monotonic()
    try:
        replicas = by_preference(plan.cluster.replicas, plan.run.file_system_options)
        try:
            folded = LogFold(plan, replicas).folded()
        except LogFilesError as error:
            if not plan.run.keeps_errors:
                return FailedTask(f"{error}: with --errors damage is a row, and the run goes on")
            return _outcome_without_log(plan, replicas[0].replica, str(error))
        return _ClusterTask(plan, folded).outcome(started)
    except (SparkSliceError, LogFilesError, HistoryError, OSError) as error:
        return FailedTask(str(error) or type(error).__name__)


def _outcome_without_log(plan: ClusterPlan, replica: Replica, reason: str) -> ClusterOutcome:
    """Stage the error of a cluster that cannot be folded; its tables stay as they are."""
    run, state = plan.run, plan.state
    stage = run.new_stage()
    error = ErrorRow(run.number, replica.log_directory, 0, None, "unusable", reason)
    stage.add_rows(ERRORS, plan.directory, [error])
    fingerprint = plan.cluster.fingerprint
    state = (
        ClusterState(None, None, 0, fingerprint, None, [], run.with_json)
        if state is None
        else replace(state, fingerprint=fingerprint)
    )
    stage.add_bytes(f"{STATE}/{plan.directory}/{CLUSTER_FILE}", state.to_bytes())
    return ClusterOutcome(
        cluster_id=plan.cluster.cluster_id,
        begin=FoldBegin.UNUSABLE,
        node_id=replica.node_id,
        log_directory=replica.log_directory,
        from_offset=state.next_offset,
        next_offset=state.next_offset,
        record_count=0,
        control_count=0,
        unfolded_count=0,
        pieces=[],
        staged=stage.staged,
        errors=[error],
        replaces_all=False,
        is_tail_torn=False,
        duration_ms=0,
    )


class _ClusterTask:
    """The files of one cluster, made from its folded log."""

    def __init__(self, plan: ClusterPlan, folded: FoldedLog) -> None:
        self._plan = plan
        self._run = plan.run
        self._folded = folded
        self._stage = folded.stage

    def outcome(self, started: float) -> ClusterOutcome:
        """Stage all files; return what they are."""
        pieces = self._write_records()
        self._folded.rows.finish()
        self._write_open_rows()
        self._write_state()
        self._write_divergence()
        if self._folded.errors:
            self._stage.add_rows(ERRORS, self._plan.directory, self._folded.errors)
        folded, reference = self._folded, self._folded.replicas[0].replica
        self._save()
        return ClusterOutcome(
            cluster_id=self._plan.cluster.cluster_id,
            begin=folded.start.begin,
            node_id=reference.node_id,
            log_directory=reference.log_directory,
            from_offset=folded.start.next_offset,
            next_offset=folded.start.history.next_offset,
            record_count=folded.reading.handed_count,
            control_count=folded.control_count,
            unfolded_count=self._unfolded_count,
            pieces=pieces,
            staged=self._stage.staged,
            errors=folded.errors,
            replaces_all=self._replaces_all,
            is_tail_torn=folded.reading.is_tail_torn,
            duration_ms=round((time.monotonic() - started) * 1000),
        )

    @property
    def _unfolded_count(self) -> int:
        return self._folded.start.snapshot_count + self._folded.earlier.handed_count

    @property
    def _replaces_all(self) -> bool:
        return self._folded.start.begin not in {FoldBegin.SAVED, FoldBegin.LOG_STARTS_LATER}

    def _write_records(self) -> list[Piece]:
        """Write the table of records if it is small; return the pieces that are left to others."""
        folded = self._folded
        pieces = [*folded.start.pieces, *folded.earlier.pieces, *folded.reading.pieces]
        size = sum(piece.unit.end - piece.unit.start.position for piece in pieces)
        if size > self._run.inline_bytes_max:
            return pieces
        written = write_records(pieces, folded.rows, self._run)
        expected = folded.reading.handed_count + self._unfolded_count
        if written != expected:
            raise UnreconciledError(
                f"{self._plan.cluster.cluster_id}: {expected} records were read, but {written} "
                "are in the table of records"
            )
        return []

    def _write_open_rows(self) -> None:
        """Write what is not over; the next run replaces these files."""
        open_rows: dict[tuple[str, int | None], list[tuple[Any, ...]]] = defaultdict(list)
        for row in self._folded.start.history.open_rows():
            open_rows[table_and_day(row)].append(row)
        last_day = day_of(self._folded.start.history.last_timestamp_ms)
        for table in HISTORY_TABLES.keys() - {table for table, _ in open_rows}:
            # A table without rows has a file, too, so that it can be read.
            open_rows[table, last_day] = []
        for (table, day), rows in open_rows.items():
            folders = f"{self._plan.directory}/{day_directory(day)}"
            self._stage.add_rows(table, folders, rows, is_open=True)

    def _write_state(self) -> None:
        rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in STATE_TABLES}
        for row in self._folded.start.history.end_state():
            rows[_STATE_TABLE[type(row)]].append(row)
        for table, found in rows.items():
            self._stage.add_rows(table, self._plan.directory, found, is_open=True)

    def _write_divergence(self) -> None:
        reference, *others = [each.replica for each in self._folded.replicas]
        rows = list(divergence_rows(reference, others, self._run.file_system_options))
        self._stage.add_rows(DIVERGENCE, self._plan.directory, rows, is_open=True)

    def _save(self) -> None:
        """Stage what the next run goes on from."""
        folder = f"{STATE}/{self._plan.directory}"
        history = f"{folder}/{HISTORY_FILE}-{self._run.number:06}"
        self._stage.add_bytes(history, self._folded.start.history.to_bytes())
        state = ClusterState(
            tail=self._folded.reading.tail,
            tail_place=self._folded.reading.tail_place,
            next_offset=self._folded.start.history.next_offset,
            fingerprint=self._plan.cluster.fingerprint,
            history=history,
            replaced=[history, *(file.target for file in self._stage.staged if file.is_open)],
            with_json=self._run.with_json,
        )
        self._stage.add_bytes(f"{folder}/{CLUSTER_FILE}", state.to_bytes())
