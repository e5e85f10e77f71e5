"""The values that the driver hands to the tasks and gets back, and the runner of tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any, NamedTuple, Protocol, TypeVar

from kvorum.spark.pipeline.cluster_state import ClusterState
from kvorum.spark.pipeline.layout import cluster_directory
from kvorum.spark.pipeline.log_reading import Piece
from kvorum.spark.pipeline.output_files import output_files
from kvorum.spark.pipeline.progress import Console
from kvorum.spark.pipeline.replicas import Cluster
from kvorum.spark.pipeline.staged_files import Stage, StagedFile
from kvorum.spark.pipeline.tables import ErrorRow

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The common values of all tasks of a run.

    `root` is the output, `staging` the run's directory in it. Without `keeps_errors` damage ends
    the run. Records of up to `inline_bytes_max` bytes of files are written by the task that folds
    them.
    """

    number: int
    root: str
    staging: str
    with_json: bool
    keeps_errors: bool
    inline_bytes_max: int
    file_system_options: Mapping[str, Any]

    def new_stage(self) -> Stage:
        """Return the folder for the files of one attempt of a task."""
        files = output_files(self.root, self.file_system_options)
        return Stage(files, self.root, self.staging, self.number)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A cluster with news; `state` is what the last run left, None where all is folded again."""

    run: RunPlan
    cluster: Cluster
    state: ClusterState | None

    @property
    def directory(self) -> str:
        """The name of the cluster's directory in each table."""
        return cluster_directory(self.cluster.cluster_id)


@unique
class FoldBegin(StrEnum):
    """The state that a run's fold of a cluster began with, and the reason."""

    LOG = "log"
    SNAPSHOT = "snapshot"
    SAVED = "saved"
    LOG_STARTS_LATER = "log_starts_later"
    LOG_REWRITTEN = "log_rewritten"
    UNUSABLE = "unusable"


class ClusterOutcome(NamedTuple):
    """The part of one cluster that a task folded.

    The offsets and counts are those of the log, control records included in `record_count`;
    `unfolded_count` is that of the records of the snapshot with which the fold began, and of the
    records before it that the log still has.
    `pieces` are the records that were read, as far as this task did not write them into their table
    itself. `replaces_all` means that all rows of the cluster that are in the tables go.
    """

    cluster_id: str
    begin: FoldBegin
    node_id: int | None
    log_directory: str
    from_offset: int
    next_offset: int
    record_count: int
    control_count: int
    unfolded_count: int
    pieces: list[Piece]
    staged: list[StagedFile]
    errors: list[ErrorRow]
    replaces_all: bool
    is_tail_torn: bool
    duration_ms: int


class PiecePlan(NamedTuple):
    """A piece of a cluster's log whose records are to be written."""

    run: RunPlan
    cluster_id: str
    directory: str
    piece: Piece


class PieceOutcome(NamedTuple):
    """The part of a piece that a task wrote into the table of records."""

    cluster_id: str
    record_count: int
    staged: list[StagedFile]


class FailedTask(NamedTuple):
    """A task that ends the run: one line for the user."""

    reason: str


Result = TypeVar("Result", ClusterOutcome, PieceOutcome)


class Tasks(Protocol):
    """A way to run one task for each item."""

    def run(
        self,
        task: Callable[[Item], Result | FailedTask],
        items: Sequence[Item],
        what: str,
        progress: Console,
    ) -> list[Result]:
        """Return the result of `task` for each item, in their order.

        `progress` shows how many of the items, which it calls `what`, are done. Raises
        `PipelineError` when a task has failed; the others are given up.
        """
        ...
