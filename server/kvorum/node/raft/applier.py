"""Hands what is committed to the listener: in order, once, and in pieces that do not take long."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kvorum.node.raft.directory import batches_of
from kvorum.node.raft.listener import CommittedBatch, RaftListener
from kvorum.node.raft.snapshot_files import load_snapshot
from kvorum.raft.effects import Committed, LeaderChanged, LeadershipGained, LeadershipLost
from kvorum.storage.errors import MissingSnapshotError
from kvorum.storage.log import MetadataLog
from kvorum.storage.names import OffsetAndEpoch
from kvorum.wire.records import RecordBatch

STEP_BYTES = 256 * 1024
"""How much of the log is handed over before other work of the event loop gets its turn."""


@dataclass(frozen=True, slots=True)
class SnapshotReady:
    """A snapshot takes the place of the log below its end."""

    snapshot_id: OffsetAndEpoch


Event: TypeAlias = Committed | LeadershipGained | LeadershipLost | LeaderChanged | SnapshotReady


class Applier:
    """Follows the log up to the high watermark; `next_offset` is the first one not handed over."""

    def __init__(self, log: MetadataLog, listener: RaftListener) -> None:
        self.next_offset = log.start_offset
        self._log = log
        self._listener = listener
        self._events: deque[Event] = deque()
        self._remembered: dict[int, CommittedBatch] = {}
        self._leading_epoch: int | None = None

    def add(self, event: Event) -> None:
        """Queue something to be told behind all that was queued before."""
        self._events.append(event)

    def remember(self, batch: CommittedBatch) -> None:
        """Keep a batch of one's own until it is committed, so that it need not be read again."""
        self._remembered[batch.base_offset] = batch

    def forget_from(self, offset: int) -> None:
        """Drop remembered batches from `offset` on: the log was cut off there."""
        for base_offset in [known for known in self._remembered if known >= offset]:
            del self._remembered[base_offset]

    @property
    def has_work(self) -> bool:
        """Whether `step` has something to do."""
        return bool(self._events)

    def step(self) -> None:
        """Tell the listener one thing, or a piece of it. Raises what the listener raises."""
        event = self._events[0]
        if isinstance(event, Committed) and not self._hand_over(event.high_watermark):
            return
        self._events.popleft()
        match event:
            case LeadershipGained():
                self._leading_epoch = event.epoch
                self._listener.on_leadership_gained(event.epoch)
            case LeadershipLost():
                self._leading_epoch = None
                self._listener.on_leadership_lost(event.epoch)
            case LeaderChanged():
                self._listener.on_leader_change(event.leader_id, event.epoch)
            case SnapshotReady():
                self._load(event.snapshot_id)
            case Committed():
                pass

    def stop(self) -> None:
        """Tell nothing more but that a leadership that was told of is over."""
        self._events.clear()
        if self._leading_epoch is not None:
            epoch, self._leading_epoch = self._leading_epoch, None
            self._listener.on_leadership_lost(epoch)

    def _hand_over(self, high_watermark: int) -> bool:
        """Hand over a piece of the log; tell whether that reached `high_watermark`."""
        end_offset = min(high_watermark, self._log.end_offset)
        if self.next_offset < end_offset:
            batches = list(self._next_batches(end_offset))
            if not batches:
                # It is within a batch, on somebody's word: the rest of that is still to come.
                return True
            self.next_offset = batches[-1].last_offset + 1
            self._listener.on_commit(batches)
        return self.next_offset >= end_offset

    def _next_batches(self, end_offset: int) -> Iterator[CommittedBatch]:
        offset, size = self.next_offset, 0
        while offset < end_offset and size < STEP_BYTES:
            batch = self._remembered.get(offset)
            if batch is None or batch.last_offset >= end_offset:
                break
            del self._remembered[offset]
            yield batch
            offset, size = batch.last_offset + 1, size + batch.size_bytes
        if offset > self.next_offset:
            return
        for found in batches_of(
            self._log, self._log.read(offset, STEP_BYTES, end_offset=end_offset)
        ):
            yield committed_batch(found)

    def _load(self, snapshot_id: OffsetAndEpoch) -> None:
        snapshot = load_snapshot(self._log, snapshot_id)
        if snapshot is None:
            raise MissingSnapshotError(
                "the snapshot that the log begins behind is gone",
                file=self._log.snapshots.path(snapshot_id),
            )
        self._listener.on_snapshot(snapshot)
        self.next_offset = snapshot_id.offset


def committed_batch(batch: RecordBatch) -> CommittedBatch:
    """Return a batch of the log as the listener hears of it."""
    is_control = batch.is_control
    values = () if is_control else tuple(record.value or b"" for record in batch.records())
    return CommittedBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        epoch=batch.partition_leader_epoch,
        append_timestamp_ms=batch.max_timestamp,
        values=values,
        is_control=is_control,
        size_bytes=batch.size,
    )
