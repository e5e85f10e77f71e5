"""The plan of a run: the clusters with news, and what the last run left of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kvorum.spark.pipeline.cluster_plan import ClusterPlan, RunPlan
from kvorum.spark.pipeline.cluster_state import ClusterState
from kvorum.spark.pipeline.delta_log import LOG
from kvorum.spark.pipeline.errors import DamagedOutputError, PipelineError
from kvorum.spark.pipeline.layout import (
    CLUSTER_FILE,
    COMMITS,
    ICEBERG_METADATA,
    STATE,
    cluster_directory,
)
from kvorum.spark.pipeline.log_tail import is_in_place
from kvorum.spark.pipeline.output_files import OutputFiles
from kvorum.spark.pipeline.replicas import Cluster
from kvorum.spark.pipeline.request import TableFormat
from kvorum.spark.pipeline.tables import ALL_TABLES, RUNS

# The files that each format adds to the directory of a table.
_TRACES: Final[Mapping[str, TableFormat]] = MappingProxyType(
    {LOG: TableFormat.DELTA, ICEBERG_METADATA: TableFormat.ICEBERG}
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
