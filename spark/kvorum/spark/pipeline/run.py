"""A run of the pipeline, from the inputs to the commit."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final
from uuid import uuid4

from kvorum.log_files.find import find_files
from kvorum.spark.errors import DamagedOutputError, PipelineError, UnreconciledError
from kvorum.spark.pipeline.cluster_plan import (
    ClusterOutcome,
    ClusterPlan,
    FoldBegin,
    PieceOutcome,
    PiecePlan,
    RunPlan,
    Tasks,
)
from kvorum.spark.pipeline.cluster_state import ClusterState, is_in_place
from kvorum.spark.pipeline.delta_log import LOG
from kvorum.spark.pipeline.fold_task import fold_cluster
from kvorum.spark.pipeline.journal import Journal, commit, commit_of, recover
from kvorum.spark.pipeline.layout import (
    CLUSTER_FILE,
    COMMITS,
    ICEBERG_METADATA,
    STAGING,
    STATE,
    cluster_directory,
)
from kvorum.spark.pipeline.lock import locked
from kvorum.spark.pipeline.output_files import OutputFiles, output_files, output_root
from kvorum.spark.pipeline.progress import Console
from kvorum.spark.pipeline.records_task import write_piece
from kvorum.spark.pipeline.replicas import Cluster, clusters_of, demand_begin
from kvorum.spark.pipeline.request import PipelineReport, PipelineRequest, TableFormat
from kvorum.spark.pipeline.staged_files import StagedFile, rows_by_table
from kvorum.spark.pipeline.tables import ALL_TABLES, RUNS, RowCountColumn, RunRow

REBUILT: Final[Mapping[FoldBegin, str]] = MappingProxyType(
    {
        FoldBegin.LOG_REWRITTEN: "its log was cut or rewritten since the last run: folded anew",
        FoldBegin.LOG_STARTS_LATER: (
            "its log starts behind the last run's end: goes on with a snapshot"
        ),
    }
)
"""The error of a cluster whose log is not the one of the run before."""

# The files that each format adds to the directory of a table.
_TRACES: Final[Mapping[str, TableFormat]] = MappingProxyType(
    {LOG: TableFormat.DELTA, ICEBERG_METADATA: TableFormat.ICEBERG}
)


def find_clusters(request: PipelineRequest) -> tuple[Cluster, ...]:
    """Return the clusters at the inputs; raises `LogFilesError` where there are no usable logs."""
    clusters = clusters_of(find_files(request.inputs, request.search))
    if not request.keeps_errors:
        for cluster in clusters:
            demand_begin(cluster)
    return clusters


def run_pipeline(
    request: PipelineRequest, start_tasks: Callable[[], Tasks], progress: Console
) -> PipelineReport:
    """Bring the tables up to date; `start_tasks` is called only if there is something to do.

    Raises `SparkSliceError` or `LogFilesError` with one clear line, before anything that readers
    see has changed.
    """
    started = time.monotonic()
    # A missing package is said before there is anything to complete.
    commit_of(request.table_format)
    clusters = find_clusters(request)
    root = output_root(request.output)
    files = output_files(request.output, request.file_system_options)
    with locked(files, root):
        demand_own_output(files, root)
        number, completed = recover(files, root)
        for each in completed:
            progress.note(f"run {each} had been committed, and is completed")
        demand_format(files, root, request.table_format)
        run = RunPlan(
            number=number,
            root=root,
            staging=f"{STAGING}/{number}-{uuid4().hex}",
            with_json=request.with_json,
            keeps_errors=request.keeps_errors,
            inline_bytes_max=request.inline_bytes_max,
            file_system_options=request.file_system_options,
        )
        plans = plans_of(clusters, run, files, is_rebuild=request.is_rebuild)
        report = PipelineReport(number, len(clusters), len(plans))
        if plans:
            report = _Run(run, files, progress, request.table_format).work(
                plans, report, start_tasks
            )
    return replace(report, duration_s=time.monotonic() - started)


class _Run:
    """One run with something to do."""

    def __init__(
        self, run: RunPlan, files: OutputFiles, progress: Console, table_format: TableFormat
    ) -> None:
        self._run = run
        self._table_format = table_format
        self._files = files
        self._progress = progress
        self._began_at_ms = round(time.time() * 1000)

    def work(
        self, plans: Sequence[ClusterPlan], report: PipelineReport, start_tasks: Callable[[], Tasks]
    ) -> PipelineReport:
        """Fold, write and commit; return what was done."""
        tasks = start_tasks()
        outcomes = tasks.run(fold_cluster, plans, "clusters", self._progress)
        pieces = self._write_pieces(tasks, plans, outcomes)
        staged = [file for outcome in outcomes for file in outcome.staged]
        staged += [file for piece in pieces for file in piece.staged]
        rows = rows_by_table(staged)
        runs = self._stage_runs(plans, outcomes, pieces)
        self._progress.close()
        commit(self._files, self._run.root, self._journal(plans, outcomes, [*staged, *runs], rows))
        return replace(
            report,
            record_count=sum(each.record_count for each in outcomes),
            row_counts=rows,
            error_count=sum(len(each.errors) for each in outcomes),
            rebuilt={
                each.cluster_id: REBUILT[each.begin] for each in outcomes if each.begin in REBUILT
            },
        )

    def _write_pieces(
        self, tasks: Tasks, plans: Sequence[ClusterPlan], outcomes: Sequence[ClusterOutcome]
    ) -> list[PieceOutcome]:
        """Write the records that the folding tasks have left."""
        pieces = [
            PiecePlan(self._run, outcome.cluster_id, plan.directory, piece)
            for plan, outcome in zip(plans, outcomes, strict=True)
            for piece in outcome.pieces
        ]
        if not pieces:
            return []
        written = tasks.run(write_piece, pieces, "parts of the table of records", self._progress)
        demand_all_records(outcomes, written)
        return written

    def _stage_runs(
        self,
        plans: Sequence[ClusterPlan],
        outcomes: Sequence[ClusterOutcome],
        pieces: Iterable[PieceOutcome],
    ) -> list[StagedFile]:
        stage = self._run.new_stage()
        by_cluster: dict[str, list[StagedFile]] = defaultdict(list)
        for piece in pieces:
            by_cluster[piece.cluster_id] += piece.staged
        for plan, outcome in zip(plans, outcomes, strict=True):
            rows = rows_by_table([*outcome.staged, *by_cluster[outcome.cluster_id]])
            stage.add_rows(RUNS, plan.directory, [self._run_row(outcome, rows)])
        return stage.staged

    def _run_row(self, outcome: ClusterOutcome, rows: Mapping[str, int]) -> RunRow:
        return RunRow(
            run=self._run.number,
            started_at=self._began_at_ms,
            duration_ms=outcome.duration_ms,
            node_id=outcome.node_id,
            log_directory=outcome.log_directory,
            begin=outcome.begin,
            from_offset=outcome.from_offset,
            to_offset=outcome.next_offset,
            record_count=outcome.record_count,
            control_record_count=outcome.control_count,
            error_count=len(outcome.errors),
            is_tail_torn=outcome.is_tail_torn,
            row_counts=tuple(RowCountColumn(*each) for each in sorted(rows.items())),
        )

    def _journal(
        self,
        plans: Sequence[ClusterPlan],
        outcomes: Sequence[ClusterOutcome],
        staged: Sequence[StagedFile],
        rows: Mapping[str, int],
    ) -> Journal:
        removes = [
            path
            for plan, outcome in zip(plans, outcomes, strict=True)
            if outcome.begin is not FoldBegin.UNUSABLE
            for path in replaced_files(plan, self._files, replaces_all=outcome.replaces_all)
        ]
        moves = [[file.source, file.target] for file in staged]
        sizes = {
            file.target: [file.size_bytes, file.row_count]
            for file in staged
            if file.table and self._table_format is not TableFormat.PARQUET
        }
        return Journal(
            number=self._run.number,
            staging=self._run.staging,
            moves=moves,
            removes=removes,
            rows=dict(rows),
            table_format=self._table_format,
            sizes=sizes,
        )


def demand_all_records(outcomes: Iterable[ClusterOutcome], written: Iterable[PieceOutcome]) -> None:
    """Raise `UnreconciledError` where the table of records lacks a record that was folded."""
    counts: Counter[str] = Counter()
    for each in written:
        counts[each.cluster_id] += each.record_count
    for outcome in outcomes:
        expected = outcome.record_count + outcome.unfolded_count
        if outcome.pieces and counts[outcome.cluster_id] != expected:
            raise UnreconciledError(
                f"{outcome.cluster_id}: {expected} records were read, but "
                f"{counts[outcome.cluster_id]} are in the table of records"
            )


def demand_own_output(files: OutputFiles, root: str) -> None:
    """Raise `DamagedOutputError` for an output with tables that no run has committed."""
    names = set(files.names_in(root))
    foreign = names.intersection(ALL_TABLES)
    if foreign and COMMITS not in names:
        raise DamagedOutputError(
            f"{root}: holds a table {min(foreign)!r} that no run of this release wrote: "
            "choose another directory"
        )


def demand_format(files: OutputFiles, root: str, wanted: TableFormat) -> None:
    """Raise `PipelineError` for an output whose tables have another format; after `recover`."""
    names = files.names_in(f"{root}/{RUNS}")
    found = next((_TRACES[name] for name in names if name in _TRACES), TableFormat.PARQUET)
    if names and found is not wanted:
        raise PipelineError(
            f"{root}: its tables are of the format {found}: "
            f"give --format {found}, or choose another directory"
        )


def plans_of(
    clusters: Sequence[Cluster], run: RunPlan, files: OutputFiles, *, is_rebuild: bool
) -> list[ClusterPlan]:
    """Return the plans of the clusters with news, in the order of `clusters`."""
    plans: list[ClusterPlan] = []
    for cluster in clusters:
        state = None if is_rebuild else _state_of(cluster, run, files)
        if state is None or not _is_unchanged(cluster, state, run):
            plans.append(ClusterPlan(run, cluster, state))
    return plans


def _state_of(cluster: Cluster, run: RunPlan, files: OutputFiles) -> ClusterState | None:
    path = f"{run.root}/{STATE}/{cluster_directory(cluster.cluster_id)}/{CLUSTER_FILE}"
    data = files.read(path)
    if data is None:
        return None
    state = ClusterState.from_bytes(path, data)
    if state.with_json != run.with_json:
        raise PipelineError(
            f"{run.root}: cluster {cluster.cluster_id} was written "
            f"{'with' if state.with_json else 'without'} --json: do the same, or use --rebuild"
        )
    return state


def _is_unchanged(cluster: Cluster, state: ClusterState, run: RunPlan) -> bool:
    """Return whether the files are those of the last run, and the end of the log is, too."""
    if cluster.fingerprint != state.fingerprint:
        return False
    if state.tail is None or state.tail_place is None:
        return True
    return is_in_place(state.tail, state.tail_place, run.file_system_options)


def replaced_files(plan: ClusterPlan, files: OutputFiles, *, replaces_all: bool) -> list[str]:
    """Return the files of earlier runs that go, relative to the output."""
    if not replaces_all:
        return [] if plan.state is None else list(plan.state.replaced)
    root = plan.run.root
    folders = [f"{table}/{plan.directory}" for table in ALL_TABLES if table != RUNS]
    found = [
        path.removeprefix(f"{root}/")
        for folder in (*folders, f"{STATE}/{plan.directory}")
        for path in files.files_below(f"{root}/{folder}")
    ]
    return [path for path in found if not path.endswith(f"/{CLUSTER_FILE}")]
