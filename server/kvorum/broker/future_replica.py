"""A replica on its way to another log directory of its broker (Kafka's ReplicaAlterLogDirsThread).

The future log follows the current one as a follower's log follows its leader's: it is truncated to
where the epochs of the two agree, starts where the current one does, and takes its batches as they
are. It may take the place of the current log once it has everything and the controller knows where
the replica will be (`ReassignmentState`). Pure: the owner calls one function at a time.
"""

from collections.abc import Callable
from enum import Enum

from kvorum.broker.epoch_end_offset import end_of_epoch, truncation_offset
from kvorum.broker.partition_watchers import PartitionWatchers
from kvorum.storage.files import disk_errors
from kvorum.storage.topic_log.unified_log import UnifiedLog


class ReassignmentState(Enum):
    """The state of the directory that a replica moves to, as the controller knows it (KIP-858)."""

    NONE = "the future log has yet to catch up"
    QUEUED = "the controller is told"
    ACCEPTED = "the metadata has the replica in its next directory"

    @property
    def may_be_inconsistent(self) -> bool:
        """Whether the metadata may have the replica where its current log is not."""
        return self is not ReassignmentState.NONE


class FutureReplica:
    """The future log of a partition, beside its current one."""

    def __init__(
        self,
        current: UnifiedLog,
        log: UnifiedLog,
        watchers: PartitionWatchers,
        *,
        flush_log: Callable[[UnifiedLog], None],
    ) -> None:
        """Begin to copy `current` to the future log `log`, or go on.

        The `watchers` are the partition's. `flush_log` has finished segments made durable, without
        waiting for it.
        """
        self.log = log
        self._current = current
        self._watchers = watchers
        self._flush_log = flush_log
        self._truncation_offset: int | None = None
        """The offset to truncate to, as the current log was; None if it need not be."""

    @property
    def is_caught_up(self) -> bool:
        """Whether the future log has stored what the current one has, and nothing else."""
        current = self._current
        future = self.log
        return (
            future.log_end_offset == current.log_end_offset
            and not current.local_log.is_truncating
            and not future.writes.is_behind
            and future.log_start_offset >= current.log_start_offset
            and future.log_end_offset == self._common_offset()
        )

    def on_truncated(self, offset: int) -> None:
        """Truncate with the next copy what the current log was truncated of.

        Where compaction has left a gap in the leader's log, the epochs of the two logs agree all
        the same.
        """
        known = self._truncation_offset
        self._truncation_offset = offset if known is None else min(offset, known)

    def copy(self, max_bytes: int, *, leader_epoch: int, wall_ms: int) -> int:
        """Truncate the future log or append to it; return the number of bytes appended.

        `leader_epoch` is the partition's. At least one batch is copied where there is one. Raises
        CorruptBatchError, StorageError, or ProducerError.
        """
        current, future = self._current, self.log
        if current.local_log.is_truncating:
            return 0
        common = self._common_offset()
        copied_to = future.log_end_offset
        if common < copied_to:
            future.truncate_behind(common, now_ms=wall_ms)
            return 0
        # The future log has nothing left to truncate.
        self._truncation_offset = None
        if common > copied_to:
            future.truncate_behind(common, now_ms=wall_ms, fully=True)
        if future.local_log.is_truncating:
            return 0
        end = current.log_end_offset
        found = current.read_range(common, max_bytes, end_offset=end)
        with disk_errors(current.local_log.directory, "reading"):
            records = bytes(found.records)
        if records:
            future.append_as_follower(records, leader_epoch=leader_epoch, now_ms=wall_ms)
            if future.local_log.has_unflushed_segments:
                self._flush_log(future)
        self._follow_current(wall_ms)
        return len(records)

    def _follow_current(self, wall_ms: int) -> None:
        """Take over the current log's high watermark and its start, as far as the copy goes."""
        future = self.log
        future.update_high_watermark(self._current.high_watermark)
        start = future.log_start_offset
        future.delete_records(self._current.log_start_offset, now_ms=wall_ms)
        if future.log_start_offset != start:
            # A deletion of records waits for every log.
            self._watchers.notify()

    def _common_offset(self) -> int:
        """Return where the next copy begins: the end of the future log if it agrees so far.

        Below it is where the two logs part; above it is the start of the current log.
        """
        current, future = self._current.local_log, self.log.local_log
        start, end = current.log_start_offset, future.log_end_offset
        if end < start:
            return start
        if future.latest_epoch is None:
            # Without a record yet.
            return min(end, current.log_end_offset)
        last = end_of_epoch(current, future.latest_epoch)
        # An epoch that the current log does not know: nothing says how far they agree.
        common = truncation_offset(last, future, fallback=start)
        truncated_to = self._truncation_offset
        return common if truncated_to is None else max(start, min(common, truncated_to))
