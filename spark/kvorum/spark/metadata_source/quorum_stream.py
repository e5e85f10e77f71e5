"""The stream over a running quorum, as Spark calls it.

One task reads a snapshot, or some of the offsets of the log; each finds the leader for itself.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.entry_reader import BatchOrDamage
from kvorum.log_files.find import FileKind, LogFile
from kvorum.log_files.ranges import NO_EPOCH, FileRange, Place
from kvorum.quorum_client.client import QuorumClient, QuorumPlan
from kvorum.quorum_client.snapshot_copy import copy_snapshot
from kvorum.spark.columnar.range_reader import read_range
from kvorum.spark.metadata_source.columns import Column
from kvorum.spark.metadata_source.filters import NO_FILTER
from kvorum.spark.metadata_source.query import Query
from kvorum.spark.metadata_source.range_rows import arrow_rows
from kvorum.spark.streaming.options import StreamOptions
from kvorum.spark.streaming.quorum_planner import QuorumOffset, QuorumPlanner
from kvorum.spark.streaming.quorum_ranges import read_log
from kvorum.storage.names import METADATA_LOG_DIRECTORY, snapshot_name
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

OFFSETS_PER_TASK: Final = 100_000
"""The number of offsets that one task reads: some seconds of work."""


class LogPartition(InputPartition):
    """Offsets of a leader's log: from `start` to before `end_offset`."""

    def __init__(self, plan: QuorumPlan, start: OffsetAndEpoch, end_offset: int) -> None:
        super().__init__(start.offset)
        self.plan = plan
        self.start = start
        self.end_offset = end_offset


class SnapshotPartition(InputPartition):
    """A whole snapshot."""

    def __init__(self, plan: QuorumPlan, snapshot: OffsetAndEpoch) -> None:
        super().__init__(snapshot.offset)
        self.plan = plan
        self.snapshot = snapshot


class QuorumStreamReader(DataSourceStreamReader):
    """A stream of the records that a quorum has committed.

    Spark calls `read` in executors, on a copy; everything else in one process beside the driver.
    Errors of the quorum are `QuorumError`.
    """

    def __init__(
        self, options: StreamOptions, quorum: QuorumPlan, columns: tuple[Column, ...]
    ) -> None:
        self._options = options
        self._quorum = quorum
        self._columns = columns
        self._client: QuorumClient | None = None
        self._planner: QuorumPlanner | None = None
        self._begin: QuorumOffset | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the stream begins without a checkpoint.

        Spark asks this after `latestOffset`, so it is found out once.
        """
        if self._begin is None:
            self._begin = self._planning().first(self._options.starting)
        return self._begin.to_checkpoint()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the next micro-batch ends."""
        if self._begin is None:
            self.initialOffset()
        assert self._begin is not None
        return self._planning(self._begin.cluster_id).next_end(self._begin).to_checkpoint()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch, and remember where the next one begins.

        Spark also calls this after a restart, with the checkpoint's last end twice.
        """
        begin, until = QuorumOffset.from_checkpoint(start), QuorumOffset.from_checkpoint(end)
        self._begin = until
        if begin == until:
            return []
        self._planning(until.cluster_id)
        assert self._client is not None
        plan = self._client.plan._replace(
            leader_epoch=max(self._client.leader_epoch, until.end.epoch)
        )
        found: list[InputPartition] = []
        place = begin.end
        if until.snapshot is not None:
            found.append(SnapshotPartition(plan, until.snapshot))
            place = until.snapshot
        while place.offset < until.end.offset:
            end_offset = min(until.end.offset, place.offset + OFFSETS_PER_TASK)
            found.append(LogPartition(plan, place, end_offset))
            place = OffsetAndEpoch(end_offset, until.end.epoch)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task as Arrow batches."""
        query = Query(self._columns, NO_FILTER, self._options.mode, {})
        if isinstance(partition, SnapshotPartition):
            yield from _snapshot_rows(partition, query)
        elif isinstance(partition, LogPartition):
            yield from _log_rows(partition, query)
        else:
            raise TypeError(f"not a partition of this source: {partition!r}")

    def stop(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()

    def _planning(self, cluster_id: str | None = None) -> QuorumPlanner:
        """Return the planner, for a cluster that the checkpoint names, if it does."""
        if self._client is None or self._planner is None:
            plan = self._quorum
            self._client = QuorumClient(plan._replace(cluster_id=cluster_id or plan.cluster_id))
            self._planner = QuorumPlanner(self._client, offsets_max=self._options.offsets_max)
        return self._planner


def _path(plan: QuorumPlan) -> str:
    """Return what stands for the log in the column `path`, the same under every leader."""
    return f"kraft://{plan.cluster_id}/{METADATA_LOG_DIRECTORY}"


def _log_rows(partition: LogPartition, query: Query) -> Iterator[pa.RecordBatch]:
    plan = partition.plan
    path = _path(plan)
    file = LogFile(path, FileKind.SEGMENT, None, 0, 0, cluster_id=plan.cluster_id)
    with closing(QuorumClient(plan)) as client:
        batches = read_log(client, partition.start, partition.end_offset, path=path)
        yield from arrow_rows(file, batches, query)


def _snapshot_rows(partition: SnapshotPartition, query: Query) -> Iterator[pa.RecordBatch]:
    plan, snapshot = partition.plan, partition.snapshot
    path = f"{_path(plan)}/{snapshot_name(snapshot)}"
    file = LogFile(
        path, FileKind.SNAPSHOT, snapshot.offset, snapshot.epoch, 0, cluster_id=plan.cluster_id
    )
    with TemporaryDirectory(prefix="kvorum-snapshot-") as folder:
        yield from arrow_rows(file, _snapshot_batches(plan, snapshot, file, Path(folder)), query)


def _snapshot_batches(
    plan: QuorumPlan, snapshot: OffsetAndEpoch, file: LogFile, folder: Path
) -> Iterator[BatchOrDamage]:
    copy = folder / "snapshot"
    with closing(QuorumClient(plan)) as client:
        is_there = copy_snapshot(client, snapshot, copy)
    if not is_there:
        reason = "the controllers have no such snapshot any more"
        yield Damage(DamageKind.DELETED, file.path, 0, 0, None, reason)
        return
    size = copy.stat().st_size
    local = file._replace(path=str(copy), size=size)
    for item in read_range(FileRange(local, Place(0, 0, NO_EPOCH), size)):
        yield item._replace(path=file.path) if isinstance(item, Damage) else item
