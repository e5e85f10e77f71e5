"""The segments of one log, oldest first, and everything that adds or removes one.

Files are renamed to ``*.deleted`` first and removed after a delay, as in Kafka: a reader with an
open file is not disturbed, and an operator has time to undo a mistake.
"""

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kvorum.storage.errors import TooManyOpenFilesError
from kvorum.storage.files import FileSystem, disk_errors
from kvorum.storage.log.disk_queue import IN_PLACE, WriteOrder
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.producer_snapshot import ProducerSnapshotFiles
from kvorum.storage.log.segment import Segment
from kvorum.storage.log.segment_files import SEGMENT_SUFFIXES
from kvorum.storage.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_name,
    parse_offset_name,
)

_INDEX_SUFFIXES = frozenset({OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX})


class SegmentList:
    """The segments of a log, at least one; the last one is active."""

    def __init__(
        self,
        directory: Path,
        segments: list[Segment],
        *,
        files: FileSystem,
        config: LogConfig,
        producer_snapshots: ProducerSnapshotFiles,
    ) -> None:
        self._directory = directory
        self._segments = tuple(segments)
        self._files = files
        self._config = config
        self._producer_snapshots = producer_snapshots
        self._draw_jitter_ms: Callable[[], int] = lambda: 0
        # Taken out of the log; their files have their names yet.
        self._leaving: deque[tuple[int, Segment]] = deque()
        self._deletions: list[tuple[int, Path]] = []
        self._deletions_lock = threading.Lock()
        # Whether a segment began whose name a power cut may take away.
        self._has_new_names = False

    @property
    def active(self) -> Segment:
        """The segment that is appended to."""
        return self._segments[-1]

    @property
    def all(self) -> tuple[Segment, ...]:
        """All segments, oldest first."""
        return self._segments

    @property
    def first_stored_offset(self) -> int:
        """The base offset of the oldest segment that a restart would find."""
        leaving = list(self._leaving)
        return (leaving[0][1] if leaving else self._segments[0]).base_offset

    @property
    def size_bytes(self) -> int:
        """The bytes of all .log files together."""
        return sum(segment.size for segment in self._segments)

    def update_config(self, config: LogConfig) -> None:
        """Use other settings for what comes: new segments, and files that are deleted."""
        self._config = config

    def holding(self, offset: int) -> Segment:
        """Return the segment that holds `offset`, or the oldest for anything below it."""
        return self._segments[slot_holding(self._segments, offset)]

    def first_with(self, offset: int) -> Segment:
        """Return the segment of the first batch that ends at `offset` or after it.

        Without one, the last segment. Only in a log with gaps that can be another segment than the
        one that holds `offset`.
        """
        for segment in self._segments[slot_holding(self._segments, offset) :]:
            if segment.reaches(offset):
                return segment
        return self.active

    def time_rolls(self, draw_jitter_ms: Callable[[], int], *, now_ms: int) -> None:
        """Let segments without timestamps roll by the wall clock, and all of them by a jitter.

        The jitter, drawn for each segment, keeps many logs from beginning a segment at once.
        """
        self._draw_jitter_ms = draw_jitter_ms
        for segment in self._segments:
            self._time_roll(segment, now_ms)

    def _time_roll(self, segment: Segment, now_ms: int | None) -> None:
        segment.begun_ms = now_ms
        segment.roll_jitter_ms = self._draw_jitter_ms()

    def roll(
        self,
        base_offset: int | None = None,
        *,
        now_ms: int | None = None,
        order: WriteOrder = IN_PLACE,
    ) -> Segment:
        """Begin a new segment after the active one, or at `base_offset`.

        A metadata log syncs the old one before: its recovery relies on the fact that only the last
        segment can be torn. A topic's log leaves that to the next flush, because the caller may not
        be kept waiting; what it writes for the old one comes in the `order` of its writes.
        """
        old = self.active
        old.seal(order)
        new_base = old.end_offset if base_offset is None else base_offset
        if self._config.is_flushed_on_roll:
            old.sync_with_indexes()
            self._producer_snapshots.take(new_base).write(durably=True)
            return self._begin((*self._segments, self._create(new_base, now_ms)))
        order.do(partial(self._producer_snapshots.take(new_base).write, durably=False))
        self._has_new_names = True
        self._segments = (*self._segments, self._create(new_base, now_ms))
        return self.active

    def sync_from(self, offset: int) -> None:
        """Make durable what lies at `offset` or above; may run beside appends and rolls."""
        has_new_names, self._has_new_names = self._has_new_names, False
        segments = self._segments
        try:
            self._sync_sealed(segments, offset)
            segments[-1].sync()
            if has_new_names:
                self.sync_names()
        except TooManyOpenFilesError:
            self._has_new_names |= has_new_names
            raise

    def sync_at_close(self, offset: int) -> None:
        """Make all files durable, indexes included; the batches below `offset` are already."""
        self._sync_sealed(self._segments, offset)
        self.active.sync_with_indexes()

    def _sync_sealed(self, segments: Sequence[Segment], offset: int) -> None:
        """Sync finished segments from the one that ends at `offset` on.

        That one may have been flushed as the active segment, and then without its indexes.
        """
        if not self._config.is_flushed_on_roll:
            for segment in segments[:-1]:
                if segment.end_offset >= offset:
                    segment.sync_with_indexes()

    def _create(self, base_offset: int, now_ms: int | None) -> Segment:
        segment = create_segment(
            self._directory, base_offset, files=self._files, config=self._config
        )
        self._time_roll(segment, now_ms)
        return segment

    def _begin(self, segments: tuple[Segment, ...]) -> Segment:
        self.sync_names()
        self._segments = segments
        return segments[-1]

    def truncate_to(self, offset: int, *, now_ms: int) -> None:
        """Remove everything from the batch that holds `offset` on, newest files first."""
        while len(self._segments) > 1 and self.active.base_offset > offset:
            active = self.active
            self._segments = self._segments[:-1]
            self._delete(active, now_ms)
        self.active.truncate_to(offset)

    def replace_all(self, base_offset: int, *, now_ms: int) -> None:
        """Remove every segment and begin an empty one at `base_offset`."""
        for segment in reversed(self._segments):
            self._delete(segment, now_ms)
        self._begin((self._create(base_offset, now_ms),))

    def delete_before(self, start_offset: int, *, now_ms: int) -> int:
        """Take segments out that lie wholly below `start_offset`; return how many.

        Nothing blocks: `mark_leaving` does what is to be done about their files.
        """
        count = 0
        while len(self._segments) > 1 and self._segments[1].base_offset <= start_offset:
            self._leaving.append((now_ms, self._segments[0]))
            self._segments = self._segments[1:]
            count += 1
        return count

    def mark_leaving(self) -> None:
        """Mark the files of segments that were taken out as deleted; may run beside appends."""
        while self._leaving:
            now_ms, oldest = self._leaving[0]
            self._delete(oldest, now_ms)
            self._leaving.popleft()

    def replace(self, new: Segment, old: Sequence[Segment], *, now_ms: int) -> None:
        """Put a cleaned segment, which is durable, in the place of segments that follow each other.

        Their names are durable after `sync_names`. A crash leaves either the old segments, or files
        from which `finish_interrupted_swap` puts the new one in place: it is complete once none of
        its files is called ``*.cleaned``.
        """
        new.change_suffix(SWAP_SUFFIX)
        for segment in old:
            self.delete_later(segment.mark_deleted(), now_ms=now_ms)
            if segment.base_offset != new.base_offset:
                self._producer_snapshots.remove(segment.base_offset)
        new.change_suffix("")
        first = self._segments.index(old[0])
        self._segments = (*self._segments[:first], new, *self._segments[first + len(old) :])

    def sync_names(self) -> None:
        """Return once all names in the directory are durable; may run beside appends."""
        with disk_errors(self._directory, "syncing"):
            self._files.sync_directory(self._directory)

    def _delete(self, segment: Segment, now_ms: int) -> None:
        """Mark one segment's files as deleted, durably, so that no gap can come back."""
        self.delete_later(segment.mark_deleted(), now_ms=now_ms)
        self._producer_snapshots.remove(segment.base_offset)
        with disk_errors(segment.path, "deleting"):
            self._files.sync_directory(self._directory)

    def delete_later(self, paths: list[Path], *, now_ms: int) -> None:
        """Remove files, which carry the deleted suffix, once the delay has passed."""
        due_ms = now_ms + self._config.delete_delay_ms
        with self._deletions_lock:
            self._deletions += [(due_ms, path) for path in paths]

    def has_files_to_update(self, *, now_ms: int) -> bool:
        """Return whether segments were taken out, or the delay of marked files is over."""
        return bool(self._leaving) or any(due_ms <= now_ms for due_ms, _ in self._deletions)

    def take_marked(self, *, now_ms: int | None) -> list[Path]:
        """Return the marked files whose delay is over (None: all), which the caller removes."""
        with self._deletions_lock:
            marked, self._deletions = self._deletions, []
            if now_ms is not None:
                self._deletions = [entry for entry in marked if entry[0] > now_ms]
                marked = [entry for entry in marked if entry[0] <= now_ms]
        return [path for _, path in marked]

    def remove(self, paths: Sequence[Path]) -> None:
        """Remove files; may run beside everything else."""
        for path in paths:
            with disk_errors(path, "removing"):
                self._files.remove(path)

    def close(self) -> None:
        """Close all files."""
        for segment in (*self._segments, *(segment for _, segment in self._leaving)):
            segment.close()


def count_begun(segments: Sequence[Segment], offset: int) -> int:
    """Return how many segments begin at `offset` or before it."""
    return bisect_right(segments, offset, key=lambda segment: segment.base_offset)


def slot_holding(segments: Sequence[Segment], offset: int) -> int:
    """Return the index of the segment that holds `offset`; 0 for anything below the oldest."""
    return max(count_begun(segments, offset) - 1, 0)


def segments_between(segments: Sequence[Segment], first: int, end: int) -> list[Segment]:
    """Return the segments from the one that holds `first` up to those that begin below `end`."""
    if first >= end:
        return []
    start = slot_holding(segments, first)
    return [segment for segment in segments[start:] if segment.base_offset < end]


def create_segment(
    directory: Path, base_offset: int, *, files: FileSystem, config: LogConfig
) -> Segment:
    """Begin an empty segment."""
    segment = Segment(directory, base_offset, files=files, config=config, create=True)
    # Index files of that name may remain from an earlier segment.
    segment.store_indexes()
    return segment


def create_cleaned_segment(
    directory: Path, base_offset: int, *, files: FileSystem, config: LogConfig
) -> Segment:
    """Begin an empty segment of ``*.cleaned`` files; those of an earlier attempt are removed."""
    for suffix in SEGMENT_SUFFIXES:
        path = directory / (offset_name(base_offset, suffix) + CLEANED_SUFFIX)
        with disk_errors(path, "removing"):
            files.remove(path)
    return Segment(
        directory, base_offset, files=files, config=config, create=True, suffix=CLEANED_SUFFIX
    )


def find_leftovers(names: Sequence[str]) -> list[str]:
    """Return a directory's files that an earlier run marked as deleted, and lone indexes."""
    return [
        name for name in names if name.endswith(DELETED_SUFFIX) or _is_orphaned_index(name, names)
    ]


def _is_orphaned_index(name: str, every_name: Sequence[str]) -> bool:
    found = parse_offset_name(name)
    if found is None or found[1] not in _INDEX_SUFFIXES:
        return False
    return offset_name(found[0], LOG_SUFFIX) not in every_name
