"""The metadata log: a partition log with snapshots, fully validated at each start.

`PartitionLog` is the part that every log has, with its rules for threads and failures. This module
adds the snapshots that replace the records below the log's start, Kafka's rules for them, and the
flushed offset beside the segments. Snapshots may be read and written in other threads as well.
"""

from __future__ import annotations

from pathlib import Path

from kvorum.storage.errors import InvalidSnapshotIdError, StorageError
from kvorum.storage.files import FileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.partition_log import AppendInfo, PartitionLog
from kvorum.storage.metadata_log.log_opening import OpenedLog, RecoveryReport, open_directory
from kvorum.storage.metadata_log.snapshots import RawSnapshotWriter
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import (
    EpochStart,
    LogOutline,
    ValidityKind,
    ValidOffsetAndEpoch,
    end_offset_for_epoch,
    validate_offset_and_epoch,
)


class MetadataLog:
    """The log of the metadata partition; made with `MetadataLog.open`."""

    def __init__(self, opened: OpenedLog, *, files: FileSystem, config: LogConfig) -> None:
        self.directory = opened.parts.directory
        self.config = config
        self.snapshots = opened.snapshots
        self.recovery: RecoveryReport = opened.report
        self._log = PartitionLog(opened.parts, files=files, config=config)

    @classmethod
    def open(
        cls, directory: Path, *, files: FileSystem, config: LogConfig | None = None, now_ms: int
    ) -> MetadataLog:
        """Open a log directory, made if need be; `recovery` lists the repairs.

        `now_ms` is the wall clock. Validates every batch (see `recovery`), applies Kafka's rules
        for snapshots (see `log_opening`) and makes what it found durable. Raises CorruptLogError,
        MissingSnapshotError, another CorruptFileError, or DiskError.
        """
        settings = config or LogConfig()
        opened = open_directory(directory, files=files, config=settings)
        log = cls(opened, files=files, config=settings)
        try:
            log.truncate_to_latest_snapshot(now_ms=now_ms)
            log._log.keep_recovery_point()
        except BaseException:
            log._log.abandon()
            raise
        return log

    @property
    def start_offset(self) -> int:
        """The offset of the first record that may be read."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """One more than the offset of the last record."""
        return self._log.log_end_offset

    @property
    def durable_offset(self) -> int:
        """The offset below which everything would survive a power cut."""
        return self._log.recovery_point

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return self._log.size_bytes

    @property
    def latest_epoch(self) -> int | None:
        """The highest leader epoch among the records, or assigned; None while there is none."""
        return self._log.latest_epoch

    @property
    def epoch_starts(self) -> tuple[EpochStart, ...]:
        """Every leader epoch and the offset of its first record, oldest first."""
        return self._log.epoch_starts

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, of the snapshot where the log is empty, or 0.

        The epoch that a replica names in its fetches and votes.
        """
        if self.latest_epoch is not None:
            return self.latest_epoch
        latest = self.snapshots.latest()
        if latest is None:
            return 0
        if not latest.offset == self.start_offset == self.end_offset:
            raise InvalidSnapshotIdError(
                f"the log {self.start_offset} to {self.end_offset} has no epoch, "
                f"and its latest snapshot ends at {latest.offset}",
                file=self.directory,
            )
        return latest.epoch

    def append(self, batches: bytes | memoryview) -> AppendInfo:
        """Write one or more whole batches behind the last one; see `PartitionLog.append`."""
        return self._log.append(batches)

    def read(self, offset: int, max_bytes: int, *, end_offset: int | None = None) -> memoryview:
        """Return whole batches from the one that holds `offset`; see `PartitionLog.read`."""
        return self._log.read(offset, max_bytes, end_offset=end_offset)

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of a record, -1 while there is none."""
        return self._log.max_timestamp

    def offset_before(self, timestamp: int) -> int | None:
        """Return where to begin to look for a timestamp; see `PartitionLog.offset_before`."""
        return self._log.offset_before(timestamp)

    def flush(self) -> int:
        """Make everything appended so far durable; return the offset below which that holds.

        May run in another thread while the owner appends and reads. Only what this returns, or
        `durable_offset`, may count as stored.
        """
        return self._log.flush()

    def assign_epoch(self, epoch: int) -> None:
        """Record that `epoch` begins at the end of the log, as a new leader does."""
        self._log.assign_epoch(epoch)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch not above `epoch` and the offset where it ends."""
        return end_offset_for_epoch(self._outline, epoch)

    def validate_offset_and_epoch(self, position: OffsetAndEpoch) -> ValidOffsetAndEpoch:
        """Judge the position (next offset, epoch of the record before it) of another replica."""
        return validate_offset_and_epoch(self._outline, position)

    @property
    def _outline(self) -> LogOutline:
        return LogOutline(
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            last_epoch=self.last_epoch,
            epochs=self.epoch_starts,
            snapshots=self.snapshots.ids(),
        )

    def truncate_to(self, offset: int, *, now_ms: int) -> int:
        """Remove the batch that holds `offset` and all behind it; return the new end.

        See `PartitionLog.truncate_to`. The caller ensures that no committed record is removed.
        """
        return self._log.truncate_to(offset, now_ms=now_ms)

    def truncate_fully_to(self, offset: int, *, now_ms: int) -> None:
        """Remove all records and continue at `offset`, the end of a snapshot."""
        self._log.truncate_fully_and_start_at(offset, now_ms=now_ms)

    def truncate_to_latest_snapshot(self, *, now_ms: int) -> bool:
        """Replace the log by its latest snapshot if that ends later; return whether it does."""
        self.demand_sound()
        latest = self.snapshots.latest()
        end = OffsetAndEpoch(self.end_offset, self.latest_epoch or 0)
        if latest is None or latest <= end:
            return False
        if self.start_offset == self.end_offset == latest.offset:
            return False
        self.truncate_fully_to(latest.offset, now_ms=now_ms)
        self._log.delete_later(self.snapshots.mark_deleted_before(latest), now_ms=now_ms)
        return True

    def create_snapshot(
        self, snapshot_id: OffsetAndEpoch, *, high_watermark: int
    ) -> RawSnapshotWriter | None:
        """Begin a snapshot of the log up to `snapshot_id`.

        None where the log starts behind it or it exists. Raises InvalidSnapshotIdError above the
        high watermark, for an epoch that the log did not have there, or within a batch.
        """
        self.demand_sound()
        if snapshot_id.offset < self.start_offset:
            return None
        if snapshot_id.offset > high_watermark:
            problem = f"is above the high watermark {high_watermark}"
            raise self._invalid_snapshot(snapshot_id, problem)
        found = self.validate_offset_and_epoch(snapshot_id)
        if found.kind is not ValidityKind.VALID:
            problem = f"is not of this log: {found.kind.value} at {found.offset_and_epoch}"
            raise self._invalid_snapshot(snapshot_id, problem)
        if not self.is_batch_boundary(snapshot_id.offset):
            raise self._invalid_snapshot(snapshot_id, "lies within a batch")
        return self.snapshots.create(snapshot_id)

    def _invalid_snapshot(
        self, snapshot_id: OffsetAndEpoch, problem: str
    ) -> InvalidSnapshotIdError:
        what = f"a snapshot of offset {snapshot_id.offset}, epoch {snapshot_id.epoch}"
        return InvalidSnapshotIdError(f"{what} {problem}", file=self.directory)

    def is_batch_boundary(self, offset: int) -> bool:
        """Return whether a batch begins at `offset`, or the log ends there."""
        return self._log.is_batch_boundary(offset)

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch, *, now_ms: int) -> bool:
        """Move the log's start to a snapshot's end; remove older snapshots and whole segments.

        Return whether files were removed. Nothing happens unless the snapshot exists, lies above
        the log's start, and the log reaches it.
        """
        self.demand_sound()
        latest = self.snapshots.latest()
        if snapshot_id not in self.snapshots or latest is None:
            return False
        if not self.start_offset < snapshot_id.offset <= min(latest.offset, self.end_offset):
            return False
        segment_count = self._log.increment_log_start_offset(snapshot_id.offset, now_ms=now_ms)
        with self._log.changing_files():
            marked = self.snapshots.mark_deleted_before(snapshot_id)
            self._log.delete_later(marked, now_ms=now_ms)
        return bool(segment_count or marked)

    def remove_marked(self, *, now_ms: int) -> int:
        """Remove marked files whose delay is over; return their number."""
        return self._log.remove_marked(now_ms=now_ms)

    def close(self) -> None:
        """Make everything durable, leave the directory as Kafka does, and close the files.

        A poisoned log is closed without writing. Closing twice is allowed.
        """
        self._log.close()

    def demand_sound(self) -> None:
        """Raise PoisonedError if a failure, or `close`, made the log unusable."""
        self._log.demand_sound()

    def poison(self, error: StorageError) -> None:
        """Make every later call fail because of `error`; the first reason stays."""
        self._log.poison(error)
