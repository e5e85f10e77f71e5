"""Retention by size and age: removes old snapshots, and the log below the remaining ones."""

from collections.abc import Callable
from itertools import pairwise

from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshot_reader import read_last_contained_log_timestamp
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


def clean(log: MetadataLog, *, now_ms: int) -> bool:
    """Apply retention.bytes, then retention.ms; return whether anything is deleted.

    The oldest snapshot goes first, and the log then starts at the next one; the latest snapshot
    always stays. The log's owner calls this once a minute, with the wall clock, and has
    `LocalLog.update_files` called then.
    """
    did_clean = _clean_by_size(log, now_ms=now_ms)
    return _clean_by_age(log, now_ms=now_ms) or did_clean


def _clean_by_size(log: MetadataLog, *, now_ms: int) -> bool:
    limit = log.local_log.config.retention_bytes
    if limit < 0:
        return False
    sizes = {known: log.snapshots.size_bytes(known) or 0 for known in log.snapshots.ids()}

    def is_too_much(snapshot_id: OffsetAndEpoch) -> bool:
        if log.local_log.size_bytes + sum(sizes.values()) <= limit:
            return False
        del sizes[snapshot_id]
        return True

    return _clean_while(log, is_too_much, now_ms=now_ms)


def _clean_by_age(log: MetadataLog, *, now_ms: int) -> bool:
    limit = log.local_log.config.retention_ms
    if limit < 0:
        return False

    def is_too_old(snapshot_id: OffsetAndEpoch) -> bool:
        timestamp = read_last_contained_log_timestamp(log.snapshots, snapshot_id)
        return timestamp is not None and now_ms - timestamp > limit

    return _clean_while(log, is_too_old, now_ms=now_ms)


def _clean_while(
    log: MetadataLog, should_go: Callable[[OffsetAndEpoch], bool], *, now_ms: int
) -> bool:
    """Remove snapshots, oldest first, while `should_go` returns True and the removal succeeds."""
    did_clean = False
    for snapshot_id, next_id in pairwise(log.snapshots.ids()):
        if not should_go(snapshot_id) or not log.delete_before_snapshot(next_id, now_ms=now_ms):
            break
        did_clean = True
    return did_clean
