"""The metadata log: a partition log with snapshots, fully validated at each start.

`LocalLog` is the part that every log has, with its rules for threads and failures. This module
adds the snapshots that replace the records below the log's start, Kafka's rules for them, and the
flushed offset beside the segments. Snapshots may be read and written in other threads as well.
"""

from __future__ import annotations

from pathlib import Path

from kvorum.storage.errors import InvalidSnapshotIdError
from kvorum.storage.files import FileSystem
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.log_opening import OpenedLog, RecoveryReport, open_directory
from kvorum.storage.metadata_log.snapshots import RawSnapshotWriter
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import (
    LogOutline,
    ValidityKind,
    ValidOffsetAndEpoch,
    end_offset_for_epoch,
    validate_offset_and_epoch,
)


class MetadataLog:
    """The log of the metadata partition; made with `MetadataLog.open`."""

    def __init__(self, opened: OpenedLog, *, files: FileSystem, config: LogConfig) -> None:
        self.snapshots = opened.snapshots
        self.recovery: RecoveryReport = opened.report
        self.local_log = LocalLog(opened.parts, files=files, config=config)
        """The log below: its records, offsets and files."""

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
            log.local_log.keep_recovery_point()
        except BaseException:
            log.local_log.abandon()
            raise
        return log

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record that may be read."""
        return self.local_log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """One more than the offset of the last record."""
        return self.local_log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, of the snapshot where the log is empty, or 0.

        The epoch that a replica names in its fetches and votes.
        """
        log = self.local_log
        if log.latest_epoch is not None:
            return log.latest_epoch
        latest = self.snapshots.latest()
        if latest is None:
            return 0
        if not latest.offset == log.log_start_offset == log.log_end_offset:
            raise InvalidSnapshotIdError(
                f"the log {log.log_start_offset} to {log.log_end_offset} has no epoch, "
                f"and its latest snapshot ends at {latest.offset}",
                file=log.directory,
            )
        return latest.epoch

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch not above `epoch` and the offset where it ends."""
        return end_offset_for_epoch(self._outline, epoch)

    def validate_offset_and_epoch(self, position: OffsetAndEpoch) -> ValidOffsetAndEpoch:
        """Judge the position (next offset, epoch of the record before it) of another replica."""
        return validate_offset_and_epoch(self._outline, position)

    @property
    def _outline(self) -> LogOutline:
        log = self.local_log
        return LogOutline(
            start_offset=log.log_start_offset,
            end_offset=log.log_end_offset,
            last_epoch=self.last_epoch,
            epochs=log.epoch_starts,
            snapshots=self.snapshots.ids(),
        )

    def truncate_to_latest_snapshot(self, *, now_ms: int) -> bool:
        """Replace the log by its latest snapshot if that ends later; return whether it does."""
        log = self.local_log
        log.poison.demand_sound()
        latest = self.snapshots.latest()
        end = OffsetAndEpoch(log.log_end_offset, log.latest_epoch or 0)
        if latest is None or latest <= end:
            return False
        if log.log_start_offset == log.log_end_offset == latest.offset:
            return False
        log.truncate_fully_and_start_at(latest.offset, now_ms=now_ms)
        log.delete_later(self.snapshots.mark_deleted_before(latest), now_ms=now_ms)
        return True

    def create_snapshot(
        self, snapshot_id: OffsetAndEpoch, *, high_watermark: int
    ) -> RawSnapshotWriter | None:
        """Begin a snapshot of the log up to `snapshot_id`.

        None where the log starts after it or it exists. Raises InvalidSnapshotIdError above the
        high watermark, for an epoch that the log did not have there, or within a batch.
        """
        self.local_log.poison.demand_sound()
        if snapshot_id.offset < self.log_start_offset:
            return None
        if snapshot_id.offset > high_watermark:
            problem = f"is above the high watermark {high_watermark}"
            raise self._invalid_snapshot(snapshot_id, problem)
        found = self.validate_offset_and_epoch(snapshot_id)
        if found.kind is not ValidityKind.VALID:
            problem = f"is not of this log: {found.kind.value} at {found.offset_and_epoch}"
            raise self._invalid_snapshot(snapshot_id, problem)
        if not self.local_log.is_batch_boundary(snapshot_id.offset):
            raise self._invalid_snapshot(snapshot_id, "lies within a batch")
        return self.snapshots.create(snapshot_id)

    def _invalid_snapshot(
        self, snapshot_id: OffsetAndEpoch, problem: str
    ) -> InvalidSnapshotIdError:
        what = f"a snapshot of offset {snapshot_id.offset}, epoch {snapshot_id.epoch}"
        return InvalidSnapshotIdError(f"{what} {problem}", file=self.local_log.directory)

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch, *, now_ms: int) -> bool:
        """Move the log's start to a snapshot's end; delete older snapshots and whole segments.

        Return whether any go; `LocalLog.update_files` follows with the segments' files. Nothing
        happens unless the snapshot exists, does not lie below the log's start, and the log reaches
        it. A snapshot that was finished below the start, when a later one of the leader was there,
        goes too.
        """
        log = self.local_log
        log.poison.demand_sound()
        latest = self.snapshots.latest()
        if snapshot_id not in self.snapshots or latest is None:
            return False
        if not log.log_start_offset <= snapshot_id.offset <= min(latest.offset, log.log_end_offset):
            return False
        segment_count = log.increment_log_start_offset(snapshot_id.offset, now_ms=now_ms)
        with log.poison.on_failure():
            marked = self.snapshots.mark_deleted_before(snapshot_id)
            log.delete_later(marked, now_ms=now_ms)
        return bool(segment_count or marked)
