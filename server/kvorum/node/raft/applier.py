"""The applier: passes committed batches and snapshots to the listener in order, in short pieces."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from kvorum.node.raft.control_records import quorum_control_records
from kvorum.node.raft.listener import CommittedBatch, InPieces, LoadedSnapshot, RaftListener
from kvorum.node.raft.log_batches import batches_of
from kvorum.node.raft.snapshot_controls import SnapshotControls
from kvorum.raft.effects import Committed, LeaderChanged, LeadershipGained, LeadershipLost
from kvorum.storage.errors import MissingSnapshotError
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshot_reader import (
    check_snapshot,
    read_last_contained_log_timestamp,
    read_snapshot_batches,
)
from kvorum.storage.metadata_log.snapshots import RawSnapshotReader, RawSnapshotWriter
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    build_control_batch,
    build_data_batch,
)

STEP_BYTES = 256 * 1024
"""The part of the log that is passed on before other work of the event loop gets its turn."""

_END: Final = object()


def write_snapshot(
    writer: RawSnapshotWriter,
    *,
    controls: SnapshotControls,
    last_contained_log_timestamp_ms: int,
    values: Iterable[Sequence[bytes]],
    now_ms: int,
) -> None:
    """Write header, data and footer, and freeze the snapshot; abort it if that fails.

    Its offsets begin at 0. Runs in a thread of its own.
    """
    try:
        _write_parts(writer, controls, last_contained_log_timestamp_ms, values, now_ms)
        writer.freeze()
    except BaseException:
        writer.abort()
        raise


def _write_parts(
    writer: RawSnapshotWriter,
    controls: SnapshotControls,
    last_contained_log_timestamp_ms: int,
    values: Iterable[Sequence[bytes]],
    now_ms: int,
) -> None:
    epoch = writer.id.epoch
    header = SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=last_contained_log_timestamp_ms
    )
    first = [
        ControlRecord(ControlRecordType.SNAPSHOT_HEADER, header),
        *quorum_control_records(controls.kraft_version, controls.voters),
    ]
    writer.append(build_control_batch(first, base_offset=0, epoch=epoch, timestamp_ms=now_ms))
    offset = len(first)
    for batch in values:
        if not batch:
            continue
        writer.append(build_data_batch(batch, base_offset=offset, epoch=epoch, timestamp_ms=now_ms))
        offset += len(batch)
    footer = [ControlRecord(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))]
    writer.append(build_control_batch(footer, base_offset=offset, epoch=epoch, timestamp_ms=now_ms))


def check_and_freeze(writer: RawSnapshotWriter) -> None:
    """Freeze a complete fetched snapshot; else abort it and raise CorruptSnapshotError."""
    try:
        check_snapshot(writer)
        writer.freeze()
    except BaseException:
        writer.abort()
        raise


def load_snapshot(log: MetadataLog, snapshot_id: OffsetAndEpoch) -> LoadedSnapshot | None:
    """Return a snapshot for the listener; None if it does not exist. Raises StorageError.

    The file is closed when the values are exhausted or garbage-collected.
    """
    timestamp = read_last_contained_log_timestamp(log.snapshots, snapshot_id)
    reader = log.snapshots.open(snapshot_id)
    if reader is None:
        return None
    return LoadedSnapshot(
        end_offset=snapshot_id.offset,
        epoch=snapshot_id.epoch,
        last_contained_log_timestamp_ms=-1 if timestamp is None else timestamp,
        values=_values(log, reader),
    )


def _values(log: MetadataLog, reader: RawSnapshotReader) -> Iterator[tuple[bytes, ...]]:
    try:
        for header, data in read_snapshot_batches(reader):
            if header.is_control:
                continue
            for batch in batches_of(log, data):
                yield tuple(record.value or b"" for record in batch.records())
    finally:
        reader.close()


class SnapshotReady(NamedTuple):
    """A snapshot replaces the log below its end."""

    snapshot_id: OffsetAndEpoch


Event: TypeAlias = Committed | LeadershipGained | LeadershipLost | LeaderChanged | SnapshotReady


class Applier:
    """Follows the high watermark; `next_offset` is the first offset not yet passed on.

    A fetched snapshot may replace the log, and older snapshots, before all of their events have had
    their turn. What is gone by then is left out, since the snapshot is among the later events.
    """

    def __init__(self, log: MetadataLog, listener: RaftListener) -> None:
        self.next_offset = log.log_start_offset
        self._log = log
        self._listener = listener
        self._events: deque[Event] = deque()
        self._remembered: dict[int, CommittedBatch] = {}
        self._leading_epoch: int | None = None
        self._pieces: InPieces | None = None
        self._given_offset = self.next_offset

    def add(self, event: Event) -> None:
        """Queue an event after the earlier ones."""
        self._events.append(event)

    def remember(self, batch: CommittedBatch) -> None:
        """Keep a batch of this leader until it is committed, so that it is not read again."""
        self._remembered[batch.base_offset] = batch

    def forget_from(self, offset: int) -> None:
        """Drop remembered batches from `offset` on: the log was truncated there."""
        for base_offset in [known for known in self._remembered if known >= offset]:
            del self._remembered[base_offset]

    @property
    def has_work(self) -> bool:
        """Whether `step` has something to do."""
        return bool(self._events)

    def step(self) -> None:
        """Pass one event, or a piece of it, to the listener. Raises the listener's errors."""
        event = self._events[0]
        if isinstance(event, Committed):
            if self._hand_over(event.high_watermark):
                self._forget(event)
        elif isinstance(event, SnapshotReady):
            if self._load(event.snapshot_id):
                self._forget(event)
        else:
            self._events.popleft()
            self._notify(event)

    def _notify(self, event: LeadershipGained | LeadershipLost | LeaderChanged) -> None:
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
        # The listener may have stopped the replica meanwhile.
        if self._events and self._events[0] is event:
            self._events.popleft()

    def stop(self) -> None:
        """Drop all events; if the listener believes to lead, report the loss of the leadership."""
        self._events.clear()
        self._pieces = None
        if self._leading_epoch is not None:
            epoch, self._leading_epoch = self._leading_epoch, None
            self._listener.on_leadership_lost(epoch)

    def _go_on(self) -> bool:
        """Have the listener do the next piece of its last event; return whether it is done."""
        if self._pieces is not None and next(self._pieces, _END) is _END:
            self._pieces = None
        if self._pieces is not None:
            return False
        self.next_offset = self._given_offset
        return True

    def _hand_over(self, high_watermark: int) -> bool:
        """Pass on a piece of the log; return whether that reached `high_watermark`."""
        end_offset = min(high_watermark, self._log.log_end_offset)
        if self._pieces is None:
            if self.next_offset >= end_offset or self._is_replaced():
                return True
            batches = list(self._next_batches(end_offset))
            if not batches:
                # A leader may send a high watermark inside of a batch: the rest is still to come.
                return True
            self._given_offset = batches[-1].last_offset + 1
            self._pieces = self._listener.on_commit(batches)
        return self._go_on() and self.next_offset >= end_offset

    def _is_replaced(self) -> bool:
        """Return whether a later event's snapshot has replaced the records at `next_offset`."""
        return self.next_offset < self._log.log_start_offset and self._has_later_snapshot()

    def _has_later_snapshot(self) -> bool:
        return any(isinstance(event, SnapshotReady) for event in islice(self._events, 1, None))

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
            self._log, self._log.local_log.read(offset, STEP_BYTES, end_offset=end_offset)
        ):
            yield committed_batch(found)

    def _load(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Pass on a snapshot, or a piece of it; return whether it is complete."""
        if self._pieces is None:
            snapshot = load_snapshot(self._log, snapshot_id)
            if snapshot is None and self._has_later_snapshot():
                return True
            if snapshot is None:
                raise MissingSnapshotError(
                    "the snapshot at the start of the log is missing",
                    file=self._log.snapshots.path(snapshot_id),
                )
            self._given_offset = snapshot_id.offset
            self._pieces = self._listener.on_snapshot(snapshot)
        return self._go_on()


def committed_batch(batch: RecordBatch) -> CommittedBatch:
    """Return a batch of the log in the form that the listener receives."""
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
