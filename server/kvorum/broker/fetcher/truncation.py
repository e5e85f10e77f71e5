"""The offset up to which a follower keeps its log (Kafka's getOffsetTruncationState)."""

from __future__ import annotations

from kvorum.broker.partition import NO_EPOCH, EpochEndOffset, end_of_epoch
from kvorum.storage.log.local_log import LocalLog


def truncation_offset(leader: EpochEndOffset, log: LocalLog, *, fallback: int) -> int:
    """Return the offset to truncate to, where the leader says that the logs diverge.

    `leader` is the largest epoch of the leader that is not above this log's last one, and where
    it ends there. If this log has not that epoch but a smaller one, the logs may diverge before
    the result too: the next fetch finds out. `fallback` is for a leader that knows no offset.
    """
    end_offset = log.log_end_offset
    if leader.end_offset < 0:
        return fallback
    own = end_of_epoch(log, leader.epoch) if leader.epoch != NO_EPOCH else None
    if own is None or own.epoch == NO_EPOCH:
        return min(leader.end_offset, end_offset)
    if own.epoch != leader.epoch:
        return min(own.end_offset, end_offset)
    return min(own.end_offset, leader.end_offset, end_offset)
