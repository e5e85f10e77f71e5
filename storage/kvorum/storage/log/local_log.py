"""The log of one partition: the part that the metadata log and topic logs share.

Segments with their indexes, leader epochs, and a recovery point: the offset below which everything
would survive a power cut. The caller passes the stores of the recovery point and of the
producer state.

**Threads.** One thread owns the log and calls everything; `flush`, `update_files` and `sync_names`
alone may run in other threads at the same time. A flush makes durable what was appended when it was
called; appends and reads go on meanwhile. For the owner, deleted records are gone at once, and an
epoch begins at once; `update_files` follows with the files, or the next flush, before anything
counts as durable. Operations that shorten or replace files (truncations, closing) wait for those.

**Slow disks.** What an append writes may be written later, by a thread (`disk_queue`). The records
are in the log at once, and the next ones follow them. They are not read, and nothing is promised
about them, before `stored_end_offset` is beyond them. Whatever changes files in another
way than an append, or makes them durable, has the writes done first. A truncation comes in the same
order (`truncate_behind`).

**Failures.** An append that the disk refuses leaves the log as it was. If even that fails, or
if a sync fails, the log is poisoned: the disk's content is unknown, and every later call raises
PoisonedError until the directory is opened again. A failed sync is never retried, because the
operating system may have dropped the pages and would report success.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kvorum.storage.errors import (
    InvalidAppendError,
    InvalidTruncationError,
    OffsetOutOfRangeError,
    TooManyOpenFilesError,
)
from kvorum.storage.files import FileSystem
from kvorum.storage.log.batch_header import (
    NO_EPOCH,
    BatchHeader,
    LegacyHeader,
    check_as_written,
    continuation_problem,
    headers_that_continue,
)
from kvorum.storage.log.disk_pace import DiskThreads
from kvorum.storage.log.disk_queue import DiskQueue
from kvorum.storage.log.epochs import EpochCheckpoint
from kvorum.storage.log.local_log_parts import LocalLogParts
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.log_file import SegmentRollbackError
from kvorum.storage.log.log_range import LogRange
from kvorum.storage.log.poison import Poison
from kvorum.storage.log.segment import Segment
from kvorum.wire.valid_offset_and_epoch import EpochStart


class AppendInfo(NamedTuple):
    """The first and last offset that one append wrote."""

    first_offset: int
    last_offset: int


class LocalLog:
    """The log of one partition; `log_loader.load_local_log` and `MetadataLog.open` make one.

    Without `threads` every append is written at once.
    """

    def __init__(
        self,
        parts: LocalLogParts,
        *,
        files: FileSystem,
        config: LogConfig,
        threads: DiskThreads | None = None,
    ) -> None:
        self.directory = parts.directory
        self.config = config
        self._segments = parts.segments
        self._epochs = parts.epochs
        self._epoch_file = EpochCheckpoint(parts.directory, files)
        self._recovery_point_keeper = parts.recovery_point_keeper
        self._producer_snapshots = parts.producer_snapshots
        self.log_start_offset = parts.log_start_offset
        """The offset of the first record that may be read."""
        self.log_end_offset = parts.segments.active.end_offset
        """One more than the offset of the last record."""
        self.stored_end_offset = self.log_end_offset
        """The offset below which every record is in its file; records below it may be read."""
        self.recovery_point = parts.recovery_point
        """The offset below which everything would survive a power cut."""
        self.poison = Poison(parts.directory)
        """The failure, or `close`, that made the log unusable until it is opened again."""
        self.writes = DiskQueue(self.poison, threads)
        """The writes of appends; where they have failed, appends that were not stored are lost."""
        self.is_truncating = False
        """Whether a truncation is under way in a thread; only what may run beside it may run."""
        self.is_closed = False
        """Whether the log was closed or abandoned."""
        self.removal_count = 0
        """The number of begins and ends of removals and replacements of records so far."""
        self._truncated_to: int | None = None
        # Held by a running flush and by operations that remove or shorten files.
        self._files_lock = threading.Lock()
        self._stored_epochs = parts.epochs.entries

    def update_config(self, config: LogConfig) -> None:
        """Use other settings from the next append on."""
        self.config = config
        self._segments.update_config(config)

    @property
    def first_stored_offset(self) -> int:
        """The base offset of the oldest segment that a restart would find."""
        return self._segments.first_stored_offset

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether a segment that is not appended to any more would not survive a power cut."""
        return self.recovery_point < self._segments.active.base_offset

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return self._segments.size_bytes

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; the last one is active."""
        return self._segments.all

    @property
    def is_removing(self) -> bool:
        """Whether records are being removed or replaced at this moment, in whichever thread."""
        return self.removal_count % 2 == 1

    @property
    def latest_epoch(self) -> int | None:
        """The highest leader epoch among the records, or assigned; None without one."""
        return self._epochs.latest_epoch

    @property
    def epoch_starts(self) -> tuple[EpochStart, ...]:
        """Every leader epoch and the offset of its first record, oldest first."""
        return self._epochs.entries

    def append(self, batches: bytes | memoryview, *, now_ms: int | None = None) -> AppendInfo:
        """Write one or more whole batches after the last one.

        Base offsets, epochs and checksums must be in the batches already. Not durable before the
        next `flush`. Raises InvalidAppendError, and writes nothing, unless every batch is sound and
        continues the log: base offset equal to the end before it, epoch not lower.
        """
        self.poison.demand_sound()
        data = memoryview(batches)
        headers = self._checked_headers(data)
        total_is_too_much = len(data) > self.config.segment_bytes
        position = 0
        for group in [[header] for header in headers] if total_is_too_much else [headers]:
            size = sum(header.size for header in group)
            self._append_group(data[position : position + size], group, now_ms)
            position += size
        return AppendInfo(headers[0].base_offset, headers[-1].last_offset)

    def _append_group(
        self, data: memoryview, headers: list[BatchHeader], now_ms: int | None
    ) -> None:
        """Write batches that go into one segment."""
        self._maybe_roll(len(data), headers, now_ms)
        self._append_to_active(data, headers)

    def append_batch(self, batch: memoryview, header: BatchHeader) -> None:
        """Write one batch for which `maybe_roll` has made place, and whose checksum is right.

        Raises InvalidAppendError, and writes nothing, unless it continues the log as `append` says.
        """
        self.poison.demand_sound()
        self._demand_continuation(header)
        self._append_to_active(batch, [header])

    def _demand_continuation(self, header: BatchHeader) -> None:
        problem = continuation_problem(
            header,
            end_offset=self.log_end_offset,
            epoch=self._epochs.latest_epoch or 0,
            may_have_gaps=self.config.may_have_gaps,
        )
        if problem is not None:
            raise InvalidAppendError(problem, file=self.directory)

    def _append_to_active(self, data: memoryview, headers: list[BatchHeader]) -> None:
        segment = self._segments.active
        try:
            segment.append(data, headers, self.writes)
        except SegmentRollbackError as error:
            self.poison.take(error)
            raise
        for header in headers:
            if header.leader_epoch != NO_EPOCH:
                self._epochs.assign(header.leader_epoch, header.base_offset)
        self.log_end_offset = segment.end_offset
        if self.writes.is_behind:
            self.writes.do(partial(self._note_stored, self.log_end_offset))
        else:
            self._note_stored(self.log_end_offset)

    def _note_stored(self, end_offset: int) -> None:
        self.stored_end_offset = end_offset

    def maybe_roll(self, header: BatchHeader, *, now_ms: int | None = None) -> None:
        """Begin a new segment if the active one has no place for a batch, as `append` does.

        Raises InvalidAppendError unless the batch continues the log.
        """
        self.poison.demand_sound()
        self._demand_continuation(header)
        self._maybe_roll(header.size, [header], now_ms)

    def _maybe_roll(self, size: int, headers: list[BatchHeader], now_ms: int | None) -> None:
        if self._segments.active.should_roll(
            incoming_bytes=size,
            max_timestamp=max(header.max_timestamp for header in headers),
            last_offset=headers[-1].last_offset,
            config=self.config,
            now_ms=now_ms,
        ):
            if self.config.is_flushed_on_roll:
                self.finish_writes()
            with self.poison.on_failure(spares=TooManyOpenFilesError):
                first = headers[0]
                is_legacy = isinstance(first, LegacyHeader)
                # The first offset of an old message may be inside of it.
                base_offset = self.log_end_offset if is_legacy else first.base_offset
                self._segments.roll(base_offset, now_ms=now_ms, order=self.writes)

    def _store_epochs(self) -> None:
        entries = self._epochs.entries
        if entries != self._stored_epochs:
            self._epoch_file.write(entries)
            self._stored_epochs = entries

    def _checked_headers(self, data: memoryview) -> list[BatchHeader]:
        try:
            return headers_that_continue(
                data,
                end_offset=self.log_end_offset,
                epoch=self._epochs.latest_epoch or 0,
                may_have_gaps=self.config.may_have_gaps,
            )
        except ValueError as error:
            raise InvalidAppendError(str(error), file=self.directory) from error

    def read(self, offset: int, max_bytes: int, *, end_offset: int | None = None) -> memoryview:
        """Return whole batches from the one that holds `offset`, all of one segment.

        At most `max_bytes` of them but at least one batch; none that reaches beyond `end_offset`
        (exclusive; default the end of what is stored). Empty at the end. Raises
        OffsetOutOfRangeError below the start and above the end.
        """
        self._demand_within(offset)
        stored = self.stored_end_offset
        limit = stored if end_offset is None else min(end_offset, stored)
        if offset >= limit:
            return memoryview(b"")
        segment = self._segments.first_with(offset)
        data = segment.read(offset, max_bytes=max_bytes, end_offset=limit)
        self._demand_as_written(segment, data, offset)
        if not data:
            # Either the batch ends beyond the limit, or its header claims that it does.
            whole = segment.read(offset, max_bytes=1, end_offset=stored)
            self._demand_as_written(segment, whole, offset)
            if not whole and (segment.reaches(offset) or not self.config.may_have_gaps):
                raise segment.damage(f"no whole batch holds offset {offset}, which the log has", 0)
        return data

    def read_range(self, offset: int, max_bytes: int, *, end_offset: int) -> LogRange | None:
        """Return where the bytes from the batch that holds `offset` on lie; see `Segment`.

        None at the end. Unlike `read` this looks at no records, and their checksums are left to
        recovery, the cleaner and the reader, as in Kafka. May run in another thread. Raises
        OffsetOutOfRangeError below the start and above the end.
        """
        self._demand_within(offset)
        limit = min(end_offset, self.stored_end_offset)
        if offset >= limit:
            return None
        segment = self._segments.first_with(offset)
        records = segment.read_range(offset, max_bytes=max_bytes, end_offset=limit)
        return None if records is None else LogRange(segment, records)

    def is_at_hand(self, offset: int, *, end_offset: int) -> bool:
        """Return whether `read_range` reads no file: it finds nothing, or what is new."""
        limit = min(end_offset, self.stored_end_offset)
        if offset >= limit or offset < self.log_start_offset:
            return True
        active = self._segments.active
        return offset >= active.base_offset and active.is_at_hand(offset, limit)

    def _demand_within(self, offset: int) -> None:
        self.poison.demand_sound()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRangeError(
                f"offset {offset} is not within {self.log_start_offset} to {self.log_end_offset}",
                file=self.directory,
            )

    def _demand_as_written(self, segment: Segment, data: memoryview, first_offset: int) -> None:
        try:
            check_as_written(
                data,
                first_offset=first_offset,
                log_start_offset=self.log_start_offset,
                epochs=self._epochs,
                may_have_gaps=self.config.may_have_gaps,
            )
        except ValueError as error:
            raise segment.damage(str(error), 0) from error

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of a record in any segment, -1 without one."""
        return max(segment.max_timestamp for segment in self._segments.all)

    def offset_before(self, timestamp: int) -> int | None:
        """Return the offset from which to look for `timestamp` or a later one; None without any.

        No record from the log's start up to that offset has such a timestamp.
        """
        for segment in self._segments.all:
            if segment.max_timestamp >= timestamp:
                return max(segment.offset_before(timestamp), self.log_start_offset)
        return None

    def flush(self) -> int:
        """Make everything appended so far durable; return the offset below which that holds.

        Only what this returns, or `recovery_point`, may count as stored. A closed log is left as it
        is: its directory may have another name by then.
        """
        self.poison.demand_sound()
        self.writes.finish()
        return self._flush_stored()

    def flush_behind(self) -> None:
        """Make everything appended so far durable, in a thread; `writes.when_done` calls then."""
        self.writes.do_in_thread(self._flush_stored)

    def _flush_stored(self) -> int:
        self.poison.demand_sound()
        with self._files_lock:
            return self.recovery_point if self.is_closed else self._flush_all()

    def _flush_all(self) -> int:
        target = self.stored_end_offset
        if target == self.recovery_point:
            return target
        with self.poison.on_failure(spares=TooManyOpenFilesError):
            # Deleted segments were perhaps never synced: none may be left to be trusted.
            self._store_changes()
            self._segments.sync_from(self.recovery_point)
            self._recovery_point_keeper.write(target, durably=False)
        self.recovery_point = target
        return target

    def assign_epoch(self, epoch: int) -> None:
        """Record that `epoch` begins at the end of the log, as a new leader does."""
        self.poison.demand_sound()
        self._epochs.assign(epoch, self.log_end_offset)

    def truncate_to(self, offset: int, *, now_ms: int) -> int:
        """Remove the batch that holds `offset` and all after it; return the new end.

        At or above the end no record is removed, only an epoch that was assigned there. Raises
        InvalidTruncationError below the start. The caller ensures that no committed record is
        removed.
        """
        self.poison.demand_sound()
        if offset >= self.log_end_offset:
            self._epochs.truncate_from_end(offset)
            return self.log_end_offset
        self.finish_writes()
        if offset < self.log_start_offset:
            raise InvalidTruncationError(
                f"truncation to {offset}, and the log starts at {self.log_start_offset}",
                file=self.directory,
            )
        self._note_truncation(offset)
        with self._removing():
            self._lower_recovery_point(self._segments.holding(offset).end_before(offset))
            self._segments.truncate_to(offset, now_ms=now_ms)
            self._take_end_from_segments()
            self._epochs.truncate_from_end(self.log_end_offset)
            self._store_epochs()
            self._tidy_producer_snapshots()
        return self.log_end_offset

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Remove all records, and continue the empty log at `offset`."""
        self.finish_writes()
        self._note_truncation(0)
        with self._removing():
            # No record is left below the new start, so nothing may be missed there either.
            self._lower_recovery_point(0)
            # A segment may begin where one of those began.
            self._segments.mark_leaving()
            self._segments.replace_all(offset, now_ms=now_ms)
            self.log_start_offset = offset
            self._take_end_from_segments()
            self._epochs.clear()
            self._store_epochs()
            self._tidy_producer_snapshots()

    def _note_truncation(self, offset: int) -> None:
        lowest = self._truncated_to
        self._truncated_to = offset if lowest is None else min(lowest, offset)

    def take_truncation(self) -> int | None:
        """Return the lowest offset that the log was truncated to since the last call, if it was."""
        offset, self._truncated_to = self._truncated_to, None
        return offset

    def increment_log_start_offset(self, offset: int, *, now_ms: int) -> int:
        """Delete the records below `offset`; return the number of whole segments that go.

        `offset` lies between the log's start and its end. Nothing blocks: after a crash before the
        next `update_files` or `flush` the whole segments may be there again.
        """
        self.poison.demand_sound()
        self.removal_count += 1
        self.log_start_offset = offset
        segment_count = self._segments.delete_before(offset, now_ms=now_ms)
        self._epochs.truncate_from_start(offset)
        self.removal_count += 1
        return segment_count

    def time_rolls(self, draw_jitter_ms: Callable[[], int], *, now_ms: int) -> None:
        """Let segments without timestamps roll by the wall clock, and all of them by a jitter."""
        self._segments.time_rolls(draw_jitter_ms, now_ms=now_ms)

    def roll(self, *, now_ms: int | None = None) -> None:
        """Begin a new segment at the end of the log, unless the active one is empty."""
        self.poison.demand_sound()
        if self._segments.active.size > 0:
            with self.poison.on_failure(spares=TooManyOpenFilesError):
                self._segments.roll(now_ms=now_ms, order=self.writes)

    def replace_segments(self, new: Segment, old: Sequence[Segment], *, now_ms: int) -> None:
        """Put a cleaned segment in the place of segments that follow each other.

        That is durable after `sync_names`.
        """
        self.finish_writes()
        with self._removing():
            self._segments.replace(new, old, now_ms=now_ms)

    def sync_names(self) -> None:
        """Return once the names of the files are durable; a closed log is left as it is.

        May run in another thread, as `flush` may.
        """
        with self._files_lock:
            if not self.is_closed:
                self.poison.demand_sound()
                with self.poison.on_failure():
                    self._segments.sync_names()

    def is_batch_boundary(self, offset: int) -> bool:
        """Return whether a batch begins at `offset`, or the log ends there."""
        self.poison.demand_sound()
        if offset in {self.log_end_offset, self.log_start_offset}:
            return True
        if not self.log_start_offset < offset < self.log_end_offset:
            return False
        found = self._segments.holding(offset).find(offset)
        return found is not None and found[1].base_offset == offset

    def truncate_behind(self, truncate: Callable[[], None]) -> None:
        """Call `truncate` after all writes, in a thread; `writes.when_done` calls after that.

        Where it fails the log is poisoned. Without threads it is called at once, and may raise.
        """
        self.is_truncating = True
        self.writes.do_in_thread(partial(self._truncate, truncate))

    def _truncate(self, truncate: Callable[[], None]) -> None:
        try:
            truncate()
        finally:
            self.is_truncating = False

    def finish_writes(self) -> None:
        """Do the writes that wait, in any thread; raise PoisonedError where one has failed."""
        self.writes.finish()
        self.poison.demand_sound()

    @contextmanager
    def _removing(self) -> Generator[None]:
        """Count what the block removes or replaces; no flush runs beside it, a failure poisons."""
        with self._files_lock, self.poison.on_failure():
            self.removal_count += 1
            try:
                yield
            finally:
                self.removal_count += 1

    def delete_later(self, paths: list[Path], *, now_ms: int) -> None:
        """Remove files of the directory, marked as deleted, once the delay has passed."""
        self._segments.delete_later(paths, now_ms=now_ms)

    def has_files_to_update(self, *, now_ms: int) -> bool:
        """Return whether `update_files` would find something to do."""
        has_new_epochs = self._epochs.entries != self._stored_epochs
        return has_new_epochs or self._segments.has_files_to_update(now_ms=now_ms)

    def update_files(self, *, now_ms: int) -> int:
        """Store where epochs begin, mark the files of deleted segments, remove those that are due.

        Returns how many files were removed, whose delay is over. A log that is closed or has failed
        is left as it is. May run in another thread while the owner appends and reads.
        """
        self.writes.finish()
        with self._files_lock:
            if self.is_closed or self.poison.is_there:
                return 0
            with self.poison.on_failure(spares=TooManyOpenFilesError):
                self._store_changes()
            due = self._segments.take_marked(now_ms=now_ms)
        # To give much room back takes long; others need not wait for it.
        self._segments.remove(due)
        return len(due)

    def _store_changes(self) -> None:
        self._segments.mark_leaving()
        self._store_epochs()

    def close(self) -> None:
        """Make everything durable, leave the directory as Kafka does, and close the files.

        A poisoned log is closed without writing. Closing twice is allowed.
        """
        if self.is_closed:
            return
        self.writes.finish()
        self.is_closed = True
        try:
            if not self.poison.is_there:
                self._close_cleanly()
        finally:
            self._close_files()
            self.poison.close()

    def keep_recovery_point(self) -> None:
        """Store the recovery point durably, as after opening."""
        with self._files_lock:
            self._recovery_point_keeper.write(self.recovery_point, durably=True)

    def abandon(self) -> None:
        """Close the files without writing, after an opening that failed."""
        self.writes.drop()
        self.is_closed = True
        self._close_files()

    def _close_files(self) -> None:
        with self._files_lock:
            self._segments.close()
            self._recovery_point_keeper.close()

    def _close_cleanly(self) -> None:
        with self._files_lock:
            self._flush_all()
            self._segments.active.seal()
            self._segments.sync_at_close(self.recovery_point)
            self._recovery_point_keeper.write(self.log_end_offset, durably=True)
            self._producer_snapshots.take(self.log_end_offset).write(durably=True)
            self._store_changes()
            self._segments.remove(self._segments.take_marked(now_ms=None))

    def _take_end_from_segments(self) -> None:
        self.log_end_offset = self._segments.active.end_offset
        self.stored_end_offset = self.log_end_offset
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        if self.log_end_offset == self.log_start_offset:
            self.recovery_point = self.log_end_offset

    def _lower_recovery_point(self, offset: int) -> None:
        # A thread that stores the points of all logs must find no higher one from here on.
        self.recovery_point = min(offset, self.recovery_point)
        self._recovery_point_keeper.write(self.recovery_point, durably=True)

    def _tidy_producer_snapshots(self) -> None:
        bases = frozenset(segment.base_offset for segment in self._segments.all)
        self._producer_snapshots.tidy(keep=bases, end_offset=self.log_end_offset)
