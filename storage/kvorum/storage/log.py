"""The metadata log: segments, leader epochs and snapshots of one directory, as one thing.

**Threads.** One thread owns the log and calls everything; `flush` alone may run in another thread
at the same time, and so may the reading and writing of snapshots. A flush makes durable what was
appended when it was called; appends and reads go on meanwhile. What removes or shortens files
(truncations, cleaning, closing) waits for a running flush.

**Failures.** An append that the disk refuses leaves the log as it was. If even that cannot be had,
or if a sync fails, the log is poisoned: what is on disk is unknown, and every later call raises
PoisonedError until the directory is opened anew. A failed sync is never tried again, because the
operating system may have dropped the pages and would report success.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from kvorum.storage.batch_header import BatchHeader, split_batches
from kvorum.storage.epochs import EpochCheckpoint, EpochStart
from kvorum.storage.errors import (
    InvalidAppendError,
    InvalidSnapshotIdError,
    InvalidTruncationError,
    OffsetOutOfRangeError,
    PoisonedError,
    StorageError,
)
from kvorum.storage.files import FileSystem
from kvorum.storage.flushed_offset import FlushedOffsetFile
from kvorum.storage.log_config import LogConfig
from kvorum.storage.log_opening import OpenedLog, RecoveryReport, open_directory
from kvorum.storage.names import OffsetAndEpoch
from kvorum.storage.producer_snapshot import remove_producer_snapshots, write_producer_snapshot
from kvorum.storage.segment import Segment, SegmentRollbackError
from kvorum.storage.snapshots import RawSnapshotWriter

_POISON_ADVICE = "Stop the node, look at the disk, and start it again"


class AppendInfo(NamedTuple):
    """The first and last offset that one append wrote."""

    first_offset: int
    last_offset: int


class ValidityKind(Enum):
    """What an offset and epoch of another replica are to this log."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class Validity(NamedTuple):
    """The answer to a fetch position: go on, truncate to `id`, or fetch the snapshot `id`."""

    kind: ValidityKind
    id: OffsetAndEpoch


class MetadataLog:
    """The log of the metadata partition; made with `MetadataLog.open`."""

    def __init__(self, opened: OpenedLog, *, files: FileSystem, config: LogConfig) -> None:
        self.directory = opened.directory
        self.config = config
        self.snapshots = opened.snapshots
        self.recovery: RecoveryReport = opened.report
        self._files = files
        self._segments = opened.segments
        self._epochs = opened.epochs
        self._epoch_file = EpochCheckpoint(opened.directory, files)
        self._flushed_file = FlushedOffsetFile(opened.directory, files)
        self._start_offset = opened.segments.all[0].base_offset
        self._end_offset = opened.segments.active.end_offset
        self._durable_offset = self._end_offset
        self._poison: StorageError | None = None
        self._is_closed = False
        # Held by a running flush and by whatever removes or shortens files.
        self._files_lock = threading.Lock()

    @classmethod
    def open(
        cls, directory: Path, *, files: FileSystem, config: LogConfig | None = None, now_ms: int
    ) -> MetadataLog:
        """Open a log directory, made if need be; `recovery` tells what had to be put right.

        `now_ms` is the wall clock. Validates every batch (see `recovery`), applies Kafka's rules
        for snapshots (see `log_opening`) and makes what it found durable. Raises CorruptLogError,
        MissingSnapshotError, another CorruptFileError, or DiskError.
        """
        settings = config or LogConfig()
        opened = open_directory(directory, files=files, config=settings)
        log = cls(opened, files=files, config=settings)
        try:
            log.truncate_to_latest_snapshot(now_ms=now_ms)
            log._store_flushed_offset()
        except BaseException:
            log._close_files()
            raise
        return log

    @property
    def start_offset(self) -> int:
        """The offset of the first record that may be read."""
        return self._start_offset

    @property
    def end_offset(self) -> int:
        """One more than the offset of the last record."""
        return self._end_offset

    @property
    def durable_offset(self) -> int:
        """The offset below which everything would survive a power cut."""
        return self._durable_offset

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return self._segments.size_bytes

    @property
    def latest_epoch(self) -> int | None:
        """The highest leader epoch among the records, or assigned; None while there is none."""
        return self._epochs.latest_epoch

    @property
    def epoch_starts(self) -> tuple[EpochStart, ...]:
        """Every leader epoch and the offset of its first record, oldest first."""
        return self._epochs.entries

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, of the snapshot where the log is empty, or 0.

        The epoch that a replica names in its fetches and votes.
        """
        if self._epochs.latest_epoch is not None:
            return self._epochs.latest_epoch
        latest = self.snapshots.latest()
        if latest is None:
            return 0
        if not latest.offset == self._start_offset == self._end_offset:
            raise InvalidSnapshotIdError(
                f"the log {self._start_offset} to {self._end_offset} has no epoch, "
                f"and its latest snapshot ends at {latest.offset}",
                file=self.directory,
            )
        return latest.epoch

    def append(self, batches: bytes | memoryview) -> AppendInfo:
        """Write one or more whole batches behind the last one.

        Base offsets, epochs and checksums must be in the batches already. Not durable before the
        next `flush`. Raises InvalidAppendError, and writes nothing, unless every batch is sound and
        continues the log: base offset equal to the end before it, epoch not lower.
        """
        self.demand_sound()
        data = memoryview(batches)
        headers = self._checked_headers(data)
        total_is_too_much = len(data) > self.config.segment_bytes
        position = 0
        for group in [[header] for header in headers] if total_is_too_much else [headers]:
            size = sum(header.size for header in group)
            self._append_group(data[position : position + size], group)
            position += size
        return AppendInfo(headers[0].base_offset, headers[-1].last_offset)

    def _append_group(self, data: memoryview, headers: list[BatchHeader]) -> None:
        """Write batches that go into one segment."""
        segment = self._segments.active
        if segment.should_roll(
            incoming_bytes=len(data),
            max_timestamp=max(header.max_timestamp for header in headers),
            last_offset=headers[-1].last_offset,
            config=self.config,
        ):
            with self._poisoning():
                segment = self._segments.roll()
        try:
            segment.append(data, headers)
        except SegmentRollbackError as error:
            self.poison(error)
            raise
        with self._poisoning():
            for header in headers:
                self._assign_epoch(header.leader_epoch, header.base_offset)
        self._end_offset = segment.end_offset

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        if self._epochs.assign(epoch, start_offset):
            self._epoch_file.write(self._epochs.entries)

    def _forget_epochs_from(self, offset: int) -> None:
        if self._epochs.truncate_from_end(offset):
            with self._poisoning():
                self._epoch_file.write(self._epochs.entries)

    @contextmanager
    def _poisoning(self) -> Generator[None]:
        """Poison the log if the block fails: half a change may be on disk."""
        try:
            yield
        except StorageError as error:
            self.poison(error)
            raise

    def _checked_headers(self, data: memoryview) -> list[BatchHeader]:
        headers: list[BatchHeader] = []
        offset = self._end_offset
        epoch = self._epochs.latest_epoch or 0
        try:
            for header, _ in split_batches(data):
                if header.base_offset != offset or header.leader_epoch < epoch:
                    raise InvalidAppendError(
                        f"a batch at offset {header.base_offset} of epoch {header.leader_epoch} "
                        f"does not continue a log that ends at {offset} in epoch {epoch}",
                        file=self.directory,
                    )
                offset, epoch = header.next_offset, header.leader_epoch
                headers.append(header)
        except ValueError as error:
            raise InvalidAppendError(str(error), file=self.directory) from error
        if not headers:
            raise InvalidAppendError("there is no batch to append", file=self.directory)
        return headers

    def read(self, offset: int, max_bytes: int, *, end_offset: int | None = None) -> memoryview:
        """Return whole batches from the one that holds `offset`, all of one segment.

        At most `max_bytes` of them but at least one batch; none that reaches beyond `end_offset`
        (exclusive; default the end of the log). Empty at the end. Raises OffsetOutOfRangeError
        below the start and above the end.
        """
        self.demand_sound()
        if not self._start_offset <= offset <= self._end_offset:
            raise OffsetOutOfRangeError(
                f"offset {offset} is not within {self._start_offset} to {self._end_offset}",
                file=self.directory,
            )
        limit = self._end_offset if end_offset is None else min(end_offset, self._end_offset)
        if offset >= limit:
            return memoryview(b"")
        segment = self._segments.holding(offset)
        data = segment.read(offset, max_bytes=max_bytes, end_offset=limit)
        self._demand_as_written(segment, data, offset)
        if not data:
            # Either the batch reaches beyond the limit, or it only says so.
            whole = segment.read(offset, max_bytes=1, end_offset=self._end_offset)
            self._demand_as_written(segment, whole, offset)
            if not whole:
                raise segment.damage(f"no whole batch holds offset {offset}, which the log has", 0)
        return data

    def _demand_as_written(self, segment: Segment, data: memoryview, first_offset: int) -> None:
        """Raise CorruptLogError unless these are the batches that were appended.

        A batch's checksum does not cover its offset and epoch: these must fit what is known of the
        log. Nobody must be given bytes that have rotted.
        """
        expected = first_offset
        try:
            for header, _ in split_batches(data):
                offset = header.base_offset
                is_there = offset <= expected if expected == first_offset else offset == expected
                epoch = self._epochs.epoch_at(max(offset, self._start_offset))
                if not is_there or (epoch is not None and header.leader_epoch != epoch):
                    problem = f"a batch of offset {offset} and epoch {header.leader_epoch}"
                    raise ValueError(f"{problem} lies where {expected}, of epoch {epoch}, belongs")
                expected = header.next_offset
        except ValueError as error:
            raise segment.damage(str(error), 0) from error

    def flush(self) -> int:
        """Make everything appended so far durable; return the offset below which that holds.

        May run in another thread while the owner appends and reads. Only what this returns, or
        `durable_offset`, may count as stored.
        """
        self.demand_sound()
        with self._files_lock:
            target = self._end_offset
            if target == self._durable_offset:
                return target
            # Rolling syncs the old segment first, so the newest segment is all there is to sync.
            segment = self._segments.active
            with self._poisoning():
                segment.sync()
                self._flushed_file.write(target, durably=False)
            self._durable_offset = target
            return target

    def assign_epoch(self, epoch: int) -> None:
        """Note that `epoch` begins at the end of the log, as a new leader does."""
        self.demand_sound()
        with self._poisoning():
            self._assign_epoch(epoch, self._end_offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch not above `epoch` and the offset where it ends.

        For an epoch above all of the log's the answer is its end and last epoch.
        """
        found = self._epochs.end_offset_for(epoch, log_end_offset=self._end_offset)
        if found is None:
            return OffsetAndEpoch(self._end_offset, self.last_epoch)
        earliest = self.snapshots.earliest()
        if earliest is not None and found == (epoch, earliest.offset):
            return earliest
        return OffsetAndEpoch(found.start_offset, found.epoch)

    def validate_offset_and_epoch(self, offset: int, epoch: int) -> Validity:
        """Judge the position (next offset, epoch of the record before it) of another replica."""
        if self._start_offset == 0 and offset == 0:
            return Validity(ValidityKind.VALID, OffsetAndEpoch(0, 0))
        earliest = self.snapshots.earliest()
        latest = self.snapshots.latest()
        if earliest is not None and latest is not None:
            is_before = offset < self._start_offset or epoch < earliest.epoch
            is_other_start = offset == self._start_offset and epoch != earliest.epoch
            if is_before or is_other_start:
                return Validity(ValidityKind.SNAPSHOT, latest)
        end = self.end_offset_for_epoch(epoch)
        if end.epoch != epoch or end.offset < offset:
            return Validity(ValidityKind.DIVERGING, end)
        return Validity(ValidityKind.VALID, OffsetAndEpoch(offset, epoch))

    def truncate_to(self, offset: int, *, now_ms: int) -> int:
        """Remove the batch that holds `offset` and all behind it; return the new end.

        At or above the end no record goes, only an epoch that was assigned there. Raises
        InvalidTruncationError below the start. The caller answers for it that nothing committed
        goes.
        """
        self.demand_sound()
        if offset >= self._end_offset:
            self._forget_epochs_from(offset)
            return self._end_offset
        if offset < self._start_offset:
            raise InvalidTruncationError(
                f"truncation to {offset}, and the log starts at {self._start_offset}",
                file=self.directory,
            )
        with self._files_lock, self._poisoning():
            found = self._segments.holding(offset).find(offset)
            new_end = offset if found is None else found[1].base_offset
            self._lower_flushed_offset(new_end)
            self._segments.truncate_to(offset, now_ms=now_ms)
            self._take_end_from_segments()
            self._forget_epochs_from(self._end_offset)
            self._tidy_producer_snapshots()
        return self._end_offset

    def truncate_fully_to(self, offset: int, *, now_ms: int) -> None:
        """Remove all records and go on at `offset`, the end of a snapshot of them."""
        self.demand_sound()
        with self._files_lock, self._poisoning():
            # No record is left below the new start, so nothing may be missed there either.
            self._lower_flushed_offset(0)
            self._segments.replace_all(offset, now_ms=now_ms)
            self._start_offset = offset
            self._take_end_from_segments()
            if self._epochs.clear():
                self._epoch_file.write(self._epochs.entries)
            self._tidy_producer_snapshots()

    def truncate_to_latest_snapshot(self, *, now_ms: int) -> bool:
        """Replace the log by its latest snapshot where that is ahead; tell whether it was."""
        self.demand_sound()
        latest = self.snapshots.latest()
        end = OffsetAndEpoch(self._end_offset, self._epochs.latest_epoch or 0)
        if latest is None or latest <= end:
            return False
        if self._start_offset == self._end_offset == latest.offset:
            return False
        self.truncate_fully_to(latest.offset, now_ms=now_ms)
        self._segments.delete_later(self.snapshots.mark_deleted_before(latest), now_ms=now_ms)
        return True

    def create_snapshot(
        self, snapshot_id: OffsetAndEpoch, *, high_watermark: int
    ) -> RawSnapshotWriter | None:
        """Begin a snapshot of the log up to `snapshot_id`.

        None where the log starts behind it or it exists. Raises InvalidSnapshotIdError above the
        high watermark, for an epoch that the log did not have there, or within a batch.
        """
        self.demand_sound()
        if snapshot_id.offset < self._start_offset:
            return None
        if snapshot_id.offset > high_watermark:
            problem = f"is above the high watermark {high_watermark}"
            raise self._invalid_snapshot(snapshot_id, problem)
        validity = self.validate_offset_and_epoch(snapshot_id.offset, snapshot_id.epoch)
        if validity.kind is not ValidityKind.VALID:
            problem = f"is not of this log, which says {validity.kind.value} at {validity.id}"
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
        """Tell whether a batch begins at `offset`, or the log ends there."""
        self.demand_sound()
        if offset in {self._end_offset, self._start_offset}:
            return True
        if not self._start_offset < offset < self._end_offset:
            return False
        found = self._segments.holding(offset).find(offset)
        return found is not None and found[1].base_offset == offset

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch, *, now_ms: int) -> bool:
        """Let the log start at a snapshot's end; drop older snapshots and whole segments.

        True where something was dropped. Nothing happens unless the snapshot exists, lies above
        the log's start, and the log reaches it.
        """
        self.demand_sound()
        latest = self.snapshots.latest()
        if snapshot_id not in self.snapshots or latest is None:
            return False
        if not self._start_offset < snapshot_id.offset <= min(latest.offset, self._end_offset):
            return False
        with self._files_lock, self._poisoning():
            self._start_offset = snapshot_id.offset
            segment_count = self._segments.delete_before(snapshot_id.offset, now_ms=now_ms)
            if self._epochs.truncate_from_start(snapshot_id.offset):
                self._epoch_file.write(self._epochs.entries)
            marked = self.snapshots.mark_deleted_before(snapshot_id)
            self._segments.delete_later(marked, now_ms=now_ms)
        return bool(segment_count or marked)

    def remove_marked(self, *, now_ms: int) -> int:
        """Remove files that were marked as deleted long enough ago; return how many."""
        self.demand_sound()
        return self._segments.remove_marked(now_ms=now_ms)

    def close(self) -> None:
        """Make everything durable, leave the directory as Kafka does, and close the files.

        A poisoned log is closed without writing. Closing twice is allowed.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._poison is None:
                self._close_cleanly()
        finally:
            self._close_files()
            self._poison = self._poison or PoisonedError("the log is closed", file=self.directory)

    def _close_files(self) -> None:
        with self._files_lock:
            self._segments.close()
            self._flushed_file.close()

    def _close_cleanly(self) -> None:
        self.flush()
        with self._files_lock:
            active = self._segments.active
            active.seal()
            active.sync_with_indexes()
            self._flushed_file.write(self._end_offset, durably=True)
            write_producer_snapshot(self.directory, self._end_offset, self._files)
            self._segments.remove_marked(now_ms=None)

    def _store_flushed_offset(self) -> None:
        """Store durably how far the log is durable, as after opening."""
        with self._files_lock:
            self._flushed_file.write(self._durable_offset, durably=True)

    def demand_sound(self) -> None:
        """Raise PoisonedError if a failure, or closing, made the log unusable."""
        if self._poison is not None:
            raise PoisonedError(
                f"the log cannot be used any more: {self._poison.problem}",
                file=self.directory,
                advice="" if self._is_closed else _POISON_ADVICE,
            ) from self._poison

    def poison(self, error: StorageError) -> None:
        """Make every later call fail because of `error`; the first reason stays."""
        if self._poison is None:
            self._poison = error

    def _take_end_from_segments(self) -> None:
        self._end_offset = self._segments.active.end_offset
        self._durable_offset = min(self._durable_offset, self._end_offset)
        if self._end_offset == self._start_offset:
            self._durable_offset = self._end_offset

    def _lower_flushed_offset(self, offset: int) -> None:
        self._flushed_file.write(min(offset, self._durable_offset), durably=True)

    def _tidy_producer_snapshots(self) -> None:
        bases = frozenset(segment.base_offset for segment in self._segments.all)
        remove_producer_snapshots(
            self.directory, self._files, keep=bases, end_offset=self._end_offset
        )
