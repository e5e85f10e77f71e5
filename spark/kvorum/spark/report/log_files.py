"""The files that the tables were made from: replicas that differ, and damage.

They are as the runs of the pipeline found them, whatever time a page covers.
"""

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final

from kvorum.spark.pipeline.divergence import DifferenceKind
from kvorum.spark.pipeline.tables import ErrorRow, ReplicaDivergenceRow
from kvorum.spark.report.rows import MISSING
from kvorum.spark.report.tables_directory import ClusterTables

UNUSABLE: Final = "unusable"
"""The kind of an error for which a whole log cannot be used."""


@unique
class Trouble(IntEnum):
    """The trouble of a cluster, or of the files of its log."""

    NONE = 0
    DEGRADED = 1
    CRITICAL = 2


def replica_name(node_id: int | None, log_directory: str) -> str:
    """Return the node that a replica is of, or else its directory."""
    return log_directory if node_id is None else f"node {node_id}"


@dataclass(frozen=True, slots=True)
class DamagedPlace:
    """A place that could not be read, with the latest run that came to it and its time."""

    path: str
    kind: str
    offset: int
    last_offset: int | None
    reason: str
    run: int
    found_ms: int


@dataclass(frozen=True, slots=True)
class LastRun:
    """The latest run that had news of the cluster, and the offset after the last folded one."""

    number: int
    started_ms: int
    to_offset: int


@dataclass(frozen=True, slots=True)
class LogFileFacts:
    """The trouble of the files; `damages` begin with the latest run's."""

    last_run: LastRun | None
    diverged: tuple[ReplicaDivergenceRow, ...]
    behind: tuple[ReplicaDivergenceRow, ...]
    damages: tuple[DamagedPlace, ...]

    @property
    def diverged_replicas(self) -> list[str]:
        """The names of the replicas that have diverged, each once."""
        replicas = dict.fromkeys((each.node_id, each.log_directory) for each in self.diverged)
        return [replica_name(*each) for each in replicas]

    @property
    def damaged_paths(self) -> tuple[str, ...]:
        """The damaged files, each once."""
        return tuple(dict.fromkeys(each.path for each in self.damages))

    @property
    def stopped_at(self) -> DamagedPlace | None:
        """The damage at which the tables end, None where they go on to the end of the log."""
        run = self.last_run
        return next(
            (
                each
                for each in self.damages
                if run is not None
                and each.run == run.number
                and (each.kind == UNUSABLE or each.offset >= run.to_offset)
            ),
            None,
        )

    @property
    def trouble(self) -> Trouble:
        """The trouble.

        The end of a log that the reference does not have was never committed: a voter truncates it
        when it comes back. Every other divergence is of the committed log.
        """
        kinds = {each.kind for each in self.diverged}
        if self.stopped_at is not None or kinds - {DifferenceKind.BEYOND}:
            return Trouble.CRITICAL
        return Trouble.DEGRADED if self.diverged or self.damages else Trouble.NONE


def log_file_facts(tables: ClusterTables) -> LogFileFacts:
    """Return what `replica_divergence`, `errors` and `runs` show; raises `TablesError`."""
    columns = ReplicaDivergenceRow._fields
    rows = tables.read("replica_divergence", columns).dicts(*columns)
    found = [ReplicaDivergenceRow(**row) for row in rows]
    found.sort(key=lambda each: (each.from_offset, each.log_directory))
    runs = _runs(tables)
    return LogFileFacts(
        last_run=max(runs.values(), key=lambda run: run.number, default=None),
        diverged=tuple(each for each in found if each.is_divergence),
        behind=tuple(each for each in found if not each.is_divergence),
        damages=tuple(_damages(tables, runs)),
    )


def _runs(tables: ClusterTables) -> dict[int, LastRun]:
    rows = tables.read("runs", ("run", "started_at", "to_offset"))
    return {
        number: LastRun(number, started_ms, to_offset)
        for number, started_ms, to_offset in zip(
            rows.integers("run").tolist(),
            rows.times_ms("started_at").tolist(),
            rows.integers("to_offset").tolist(),
            strict=True,
        )
    }


def _damages(tables: ClusterTables, runs: dict[int, LastRun]) -> list[DamagedPlace]:
    rows = tables.read("errors", ErrorRow._fields).dicts(*ErrorRow._fields)
    rows.sort(key=lambda row: row["run"])
    # A place that several runs came to is one, of the latest run.
    latest = {(row["path"], row["offset"], row["kind"]): row for row in rows}
    places = [
        DamagedPlace(**row, found_ms=runs[row["run"]].started_ms if row["run"] in runs else MISSING)
        for row in latest.values()
    ]
    return sorted(places, key=lambda each: (-each.run, each.path, each.offset))
