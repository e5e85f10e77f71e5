"""Hands what is committed to the listener: in order, once, and in pieces that do not take long."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from kvorum.node.raft.directory import batches_of
from kvorum.node.raft.listener import CommittedBatch, InPieces, RaftListener
from kvorum.node.raft.snapshot_files import load_snapshot
from kvorum.raft.effects import Committed, LeaderChanged, LeadershipGained, LeadershipLost
from kvorum.storage.errors import MissingSnapshotError
from kvorum.storage.log import MetadataLog
from kvorum.storage.names import OffsetAndEpoch
from kvorum.wire.records import RecordBatch

STEP_BYTES = 256 * 1024
"""How much of the log is handed over before other work of the event loop gets its turn."""

_END: Final = object()


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
        self._pieces: InPieces | None = None
        self._told_offset = self.next_offset

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
        if isinstance(event, Committed):
            if self._hand_over(event.high_watermark):
                self._forget(event)
        elif isinstance(event, SnapshotReady):
            if self._load(event.snapshot_id):
                self._forget(event)
        else:
            self._events.popleft()
            self._tell(event)

    def _tell(self, event: LeadershipGained | LeadershipLost | LeaderChanged) -> None:
        match event:
            case LeadershipGained():
                self._leading_epoch = event.epoch
                self._listener.on_leadership_gained(event.epoch)
            case LeadershipLost():
                self._leading_epoch = None
                self._listener.on_leadership_lost(event.epoch)
            case LeaderChanged():
                self._listener.on_leader_change(event.leader_id, event.epoch)

    def _forget(self, event: Event) -> None:
        # Whoever was told may have stopped everything.
        if self._events and self._events[0] is event:
            self._events.popleft()

    def stop(self) -> None:
        """Tell nothing more but that a leadership that was told of is over."""
        self._events.clear()
        self._pieces = None
        if self._leading_epoch is not None:
            epoch, self._leading_epoch = self._leading_epoch, None
            self._listener.on_leadership_lost(epoch)

    def _go_on(self) -> bool:
        """Have the listener do a piece of what it was told last; tell whether that was all."""
        if self._pieces is not None and next(self._pieces, _END) is _END:
            self._pieces = None
        if self._pieces is not None:
            return False
        self.next_offset = self._told_offset
        return True

    def _hand_over(self, high_watermark: int) -> bool:
        """Hand over a piece of the log; tell whether that reached `high_watermark`."""
        end_offset = min(high_watermark, self._log.end_offset)
        if self._pieces is None:
            if self.next_offset >= end_offset:
                return True
            batches = list(self._next_batches(end_offset))
            if not batches:
                # It is within a batch, on somebody's word: the rest of that is still to come.
                return True
            self._told_offset = batches[-1].last_offset + 1
            self._pieces = self._listener.on_commit(batches)
        return self._go_on() and self.next_offset >= end_offset

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

    def _load(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Hand over a snapshot, or a piece of it; tell whether that was all."""
        if self._pieces is None:
            snapshot = load_snapshot(self._log, snapshot_id)
            if snapshot is None:
                raise MissingSnapshotError(
                    "the snapshot that the log begins behind is gone",
                    file=self._log.snapshots.path(snapshot_id),
                )
            self._told_offset = snapshot_id.offset
            self._pieces = self._listener.on_snapshot(snapshot)
        return self._go_on()


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
