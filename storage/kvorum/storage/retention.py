"""Drop old snapshots, and the log below the ones that stay, by total size and by age."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from kvorum.storage.log import MetadataLog
from kvorum.storage.names import OffsetAndEpoch
from kvorum.storage.snapshot_reader import read_last_contained_log_timestamp


def clean(log: MetadataLog, *, now_ms: int) -> bool:
    """Apply retention.bytes, then retention.ms; tell whether anything was dropped.

    The oldest snapshot goes first, and the log then starts at the next one; the latest snapshot
    always stays. Also removes files marked as deleted whose delay is over. Meant to be called once
    a minute by the log's owner, with the wall clock.
    """
    did_clean = _clean_by_size(log, now_ms=now_ms)
    did_clean = _clean_by_age(log, now_ms=now_ms) or did_clean
    log.remove_marked(now_ms=now_ms)
    return did_clean


def _clean_by_size(log: MetadataLog, *, now_ms: int) -> bool:
    limit = log.config.retention_bytes
    if limit < 0:
        return False
    sizes = {known: log.snapshots.size_bytes(known) or 0 for known in log.snapshots.ids()}

    def is_too_much(snapshot_id: OffsetAndEpoch) -> bool:
        if log.size_bytes + sum(sizes.values()) <= limit:
            return False
        del sizes[snapshot_id]
        return True

    return _clean_while(log, is_too_much, now_ms=now_ms)


def _clean_by_age(log: MetadataLog, *, now_ms: int) -> bool:
    limit = log.config.retention_ms
    if limit < 0:
        return False

    def is_too_old(snapshot_id: OffsetAndEpoch) -> bool:
        timestamp = read_last_contained_log_timestamp(log.snapshots, snapshot_id)
        return timestamp is not None and now_ms - timestamp > limit

    return _clean_while(log, is_too_old, now_ms=now_ms)


def _clean_while(
    log: MetadataLog, should_go: Callable[[OffsetAndEpoch], bool], *, now_ms: int
) -> bool:
    """Drop snapshots, oldest first, as long as `should_go` says so and it works."""
    did_clean = False
    ids = log.snapshots.ids()
    for snapshot_id, next_id in pairwise(ids):
        if not should_go(snapshot_id) or not log.delete_before_snapshot(next_id, now_ms=now_ms):
            break
        did_clean = True
    return did_clean
