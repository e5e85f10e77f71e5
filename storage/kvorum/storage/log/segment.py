"""One segment of the log: a .log file with its two indexes."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kvorum.storage.errors import CorruptLogError, DiskError, TooManyOpenFilesError
from kvorum.storage.files import FileSystem, disk_error, disk_errors, is_out_of_descriptors
from kvorum.storage.log.batch_header import HEADER_SIZE, BatchHeader, continues, header_at
from kvorum.storage.log.disk_queue import IN_PLACE, WriteOrder
from kvorum.storage.log.file_records import FileRecords
from kvorum.storage.log.indexes import NO_TIMESTAMP, IndexFile, OffsetIndex, TimeIndex
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.recent_batches import BatchPlace, RecentBatches
from kvorum.storage.log.segment_scan import BadBatchError, scan_batches
from kvorum.storage.log.transaction_index import TransactionIndex
from kvorum.storage.names import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_name,
)

# Offsets in the index files are relative to the segment's base, as int32.
RELATIVE_OFFSET_MAX = 2**31 - 1
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
_LOOKUP_READ_BYTES = 16 * 1024
_DAMAGE_ADVICE = (
    "Stop the node, keep a copy of the directory, and let it fetch the log anew from the quorum"
)


class SegmentRollbackError(DiskError):
    """A write failed and its first part could not be removed."""


class _Written(NamedTuple):
    """The part of a segment that is in its file: its size, and the offset where it ends."""

    size: int
    end_offset: int


class Segment:
    """The batches from `base_offset` up to the next segment's base.

    Everything but reading and `sync` belongs to one thread. What is appended counts in `size` and
    `end_offset` at once, and may be written later: readers are given no offset beyond what is.
    """

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        *,
        files: FileSystem,
        config: LogConfig,
        create: bool = False,
        suffix: str = "",
    ) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size = 0
        self._written = _Written(0, base_offset)
        """The part that the last write has reached; later appends may wait to be written."""
        self._recent = RecentBatches(base_offset)
        self._files = files
        self._directory = directory
        self._index_interval_bytes = config.index_interval_bytes
        self._may_have_gaps = config.may_have_gaps
        self._bytes_since_index_entry = 0
        self.begun_ms: int | None = None
        """When this process began or opened the segment, if rolling by the wall clock is wanted."""
        self.roll_jitter_ms = 0
        """By how much earlier than segment.ms says the segment ends."""
        self._first_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._closing_entry: tuple[int, int] | None = None
        """The entry of the time index that closed the segment, as `TimeIndex.last` has it."""
        self._has_indexes = True
        self._loading = threading.Lock()
        self._may_end_before = False
        self._suffix = suffix
        self.path = self._path(LOG_SUFFIX)
        self.offset_index = OffsetIndex(base_offset, size_bytes_max=config.index_size_bytes_max)
        self.time_index = TimeIndex(base_offset, size_bytes_max=config.index_size_bytes_max)
        with disk_errors(self.path, "opening"):
            self.file = files.open(self.path, create=create)
        self._offset_file = IndexFile(
            self._path(OFFSET_INDEX_SUFFIX), self.offset_index, files=files
        )
        self._time_file = IndexFile(self._path(TIME_INDEX_SUFFIX), self.time_index, files=files)
        self.transaction_index = TransactionIndex(
            self._path(TRANSACTION_INDEX_SUFFIX), base_offset, files=files
        )

    def _path(self, suffix: str) -> Path:
        return self._directory / (offset_name(self.base_offset, suffix) + self._suffix)

    def adopt(self, end_offset: int, *, is_last: bool = False) -> None:
        """Adopt a sound file that ends at `end_offset`; it is not read before its first use.

        The first use checks the batches after the last index entry against that end. In a log with
        gaps they may end before it, except in the last segment, and `end_offset` is then corrected.
        """
        self._may_end_before = self._may_have_gaps and not is_last
        with disk_errors(self.path, "opening"):
            self.size = self.file.size()
        self.end_offset = end_offset
        self._has_indexes = False
        self._recent.forget()

    def _demand_indexes(self) -> None:
        """Load the indexes of an adopted segment, or rebuild them if they do not match."""
        if not self._has_indexes:
            with self._loading:
                self._load_indexes()

    def _load_indexes(self) -> None:
        # The cleaner, in its thread, may have been the first to ask.
        if self._has_indexes:
            return
        size, end_offset = self.size, self.end_offset
        with disk_errors(self.path, "reading"):
            first = header_at(self.file.read_at(0, min(HEADER_SIZE, size)))
            if first is not None:
                self._first_timestamp = first.max_timestamp
            is_loaded = self._offset_file.load() and self._time_file.load()
            if not is_loaded or not self._note_behind_last_entry(size, end_offset):
                self._note_anew(size, end_offset)
        self._has_indexes = True

    def _note_behind_last_entry(self, size: int, end_offset: int) -> bool:
        """Account for batches from the last indexed one on; return whether they reach the end."""
        position, last_offset = self.offset_index.last
        self._max_timestamp, self._max_timestamp_offset = self.time_index.last
        self.size, self.end_offset = position, self.base_offset
        if last_offset is not None:
            header = header_at(self.file.read_at(position, HEADER_SIZE))
            if header is None or header.last_offset != last_offset:
                return False
            self.end_offset = header.base_offset
        return self._note_from(position, size) and self._ends_at(end_offset)

    def _ends_at(self, end_offset: int) -> bool:
        if self._may_end_before:
            return self.end_offset <= end_offset
        return self.end_offset == end_offset

    def _note_from(self, position: int, size: int) -> bool:
        """Account for batches from `position` on; return whether they are whole and in order."""
        try:
            for place, header in scan_batches(self.file, position=position, end=size, verify=False):
                if not self.continues(header):
                    return False
                self.note_batch(place, header)
        except BadBatchError:
            return False
        return self.size == size

    def _note_anew(self, size: int, end_offset: int) -> None:
        """Rebuild the indexes from every batch; raise CorruptLogError if the end differs."""
        self.offset_index.load(b"")
        self.time_index.load(b"")
        self._recent.forget()
        self.size, self.end_offset = 0, self.base_offset
        self._max_timestamp, self._max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self._bytes_since_index_entry = 0
        if not self._note_from(0, size) or not self._ends_at(end_offset):
            problem = f"the batches end at offset {self.end_offset}, not at {end_offset}"
            position = self.size
            self.size, self.end_offset = size, end_offset
            raise self.damage(problem, position)
        self._offset_file.store_all()
        self._time_file.store_all()

    def should_roll(
        self,
        *,
        incoming_bytes: int,
        max_timestamp: int,
        last_offset: int,
        config: LogConfig,
        now_ms: int | None = None,
    ) -> bool:
        """Return whether a new segment must begin before the given batches are appended.

        A segment's age is that of its first batch, by the timestamps of the batches; without such a
        timestamp it is the time since the segment was begun.
        """
        if self.size == 0:
            return False
        self._demand_indexes()
        age_ms = 0
        if self._first_timestamp >= 0:
            age_ms = max_timestamp - self._first_timestamp
        elif now_ms is not None and self.begun_ms is not None:
            age_ms = now_ms - self.begun_ms
        return (
            self.size > config.segment_bytes - incoming_bytes
            or age_ms > config.segment_ms - self.roll_jitter_ms
            or self.offset_index.is_full
            or self.time_index.is_full
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def append(
        self, data: memoryview, headers: Sequence[BatchHeader], order: WriteOrder = IN_PLACE
    ) -> None:
        """Write batches after the last one and index them, in the `order` of the log's writes.

        A DiskError leaves the segment as it was. SegmentRollbackError means that even that failed;
        then nothing more may be written before the directory is opened again.
        """
        self._demand_indexes()
        self._drop_closing_entry()
        position = self.size
        written = _Written(position + len(data), headers[-1].next_offset)
        order.do(partial(self._write, data, position, written))
        for header in headers:
            self.note_batch(position, header)
            position += header.size
        try:
            # Entries that are not stored for want of a descriptor are stored with later ones.
            with suppress(TooManyOpenFilesError):
                self._offset_file.store_new(order)
                self._time_file.store_new(order)
        except DiskError as error:
            raise SegmentRollbackError(error.problem, errno=error.errno, file=self.path) from error

    def _write(self, data: memoryview, position: int, written: _Written) -> None:
        try:
            self.file.write_at(position, data)
        except OSError as error:
            # Without a descriptor, nothing was written.
            if not is_out_of_descriptors(error):
                self._take_back(position, error)
            raise disk_error(error, path=self.path, doing="appending") from error
        self._written = written

    def _take_back(self, position: int, error: OSError) -> None:
        """Remove the bytes that a failed write may have left behind `position`."""
        try:
            self.file.truncate(position)
        except OSError as second_error:
            problem = f"appending failed ({error.strerror}), and so did taking it back"
            raise SegmentRollbackError(
                problem, errno=second_error.errno, file=self.path
            ) from second_error

    def continues(self, header: BatchHeader) -> bool:
        """Return whether a batch may follow the last one of the segment."""
        return continues(header.base_offset, self.end_offset, may_have_gaps=self._may_have_gaps)

    def note_batch(self, position: int, header: BatchHeader) -> None:
        """Account for a batch in the file at `position`.

        The indexes get an entry for the batch if more bytes than the interval lie after the last
        one: Kafka's rule when appending and when recovering.
        """
        if position == 0:
            self._first_timestamp = header.max_timestamp
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self.offset_index.add(offset=header.last_offset, position=position)
            self.time_index.add(timestamp=self._max_timestamp, offset=self._max_timestamp_offset)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += header.size
        self.size = position + header.size
        self.end_offset = header.next_offset
        self._recent.add(next_offset=self.end_offset, end=self.size)

    def seal(self, order: WriteOrder = IN_PLACE) -> None:
        """Add the highest timestamp to the time index, as in a complete segment.

        An adopted segment that has not been used since has that entry already.
        """
        self._recent.forget()
        if not self._has_indexes:
            return
        self._add_last_timestamp()
        self._time_file.store_new(order)

    def store_indexes(self) -> list[Path]:
        """Make the index files those of a closed segment; return the ones that changed."""
        self._add_last_timestamp()
        return [file.path for file in (self._offset_file, self._time_file) if file.store_all()]

    def _add_last_timestamp(self) -> None:
        before = self.time_index.last
        if self._max_timestamp != NO_TIMESTAMP:
            self.time_index.add(
                timestamp=self._max_timestamp, offset=self._max_timestamp_offset, is_last=True
            )
        if self.time_index.last != before:
            self._closing_entry = self.time_index.last

    def _drop_closing_entry(self) -> None:
        """Remove the entry that closed the segment, because the segment goes on.

        An index that is rebuilt from the segment does not have it.
        """
        if self._closing_entry is None or self.time_index.last != self._closing_entry:
            return
        timestamp, offset = self._closing_entry
        self.time_index.remove_last()
        try:
            self._time_file.cut()
        except DiskError:
            self.time_index.add(timestamp=timestamp, offset=offset, is_last=True)
            raise
        self._closing_entry = None

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of a record, NO_TIMESTAMP without one."""
        self._demand_indexes()
        return self._max_timestamp

    def offset_before(self, timestamp: int) -> int:
        """Return an offset before which no record has `timestamp` or a later one."""
        self._demand_indexes()
        return self.time_index.offset_before(timestamp)

    def reaches(self, offset: int) -> bool:
        """Return whether a batch of the segment ends at `offset` or after it."""
        self._demand_indexes()
        return self.size > 0 and offset < self.end_offset

    def find(self, offset: int) -> tuple[int, BatchHeader] | None:
        """Return position and header of the batch that holds `offset`, or None above the end.

        Every batch on the way must begin where the one before it ended: the checksum does not cover
        a batch's base offset. In a log with gaps the batch may begin above `offset`.
        """
        if offset >= self.end_offset or not self.reaches(offset):
            return None
        position, indexed = self.offset_index.entry_before(offset)
        expected = self.base_offset
        for place, header in self._headers_from(position):
            if indexed is not None:
                reach = header.last_offset - header.base_offset
                expected, is_next = indexed - reach, header.base_offset == indexed - reach
                indexed = None
            else:
                is_next = continues(header.base_offset, expected, may_have_gaps=self._may_have_gaps)
            if not is_next:
                problem = f"a batch of offset {header.base_offset} lies where {expected} belongs"
                raise self.damage(problem, place)
            if header.last_offset >= offset:
                return place, header
            position, expected = place + header.size, header.next_offset
        raise self.damage(f"no batch holds offset {offset}, which the log has", position)

    def end_before(self, offset: int) -> int:
        """Return where the batches end that lie wholly below `offset`."""
        self._demand_indexes()
        position, _ = self.offset_index.entry_before(offset - 1)
        end_offset = self.base_offset
        for _, header in self._headers_from(position):
            if header.last_offset >= offset:
                break
            end_offset = header.next_offset
        return end_offset

    def _headers_from(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Yield position and header of each batch from `position` on."""
        while position < self.size:
            block = memoryview(
                self.file.read_at(position, min(_LOOKUP_READ_BYTES, self.size - position))
            )
            used = 0
            while (header := header_at(block, used)) is not None:
                problem = header.problem()
                if problem is not None:
                    raise self.damage(problem, position + used)
                yield position + used, header
                used += header.size
            if used == 0:
                return
            position += used

    def read(self, offset: int, *, max_bytes: int, end_offset: int) -> memoryview:
        """Return whole batches from the one that holds `offset`, none of it at `end_offset`.

        At most `max_bytes`, but at least one batch; nothing where the first reaches `end_offset`.
        """
        with disk_errors(self.path, "reading"):
            found = self.find(offset)
            if found is None or found[1].next_offset > end_offset:
                return memoryview(b"")
            position, first = found
            wanted = min(max(max_bytes, first.size), self.size - position)
            data = memoryview(self.file.read_at(position, wanted))
        return data[: self._whole_batches(data, position, end_offset=end_offset)]

    def read_range(self, offset: int, *, max_bytes: int, end_offset: int) -> FileRecords | None:
        """Return the bytes from the batch that holds `offset` on, as Kafka's LogSegment.read does.

        At most `max_bytes`, by which the last batch may be cut off, but all of the first batch;
        nothing of a batch that reaches `end_offset`. None where no batch ends behind `offset`. The
        headers on the way to the first batch are checked, the records are not looked at.
        """
        with disk_errors(self.path, "reading"):
            first = self._recent.holding(offset) or self._find_place(offset)
            if first is None:
                return None
            end = self._position_of(end_offset)
            size = max(min(max(max_bytes, first.size), end - first.position), 0)
            return FileRecords(self.file, first.position, size)

    def _find_place(self, offset: int) -> BatchPlace | None:
        found = self.find(offset)
        return None if found is None else BatchPlace(found[0], found[1].size)

    def is_at_hand(self, offset: int, end_offset: int) -> bool:
        """Return whether `read_range` finds the records without reading the file."""
        recent = self._recent
        is_begin_known = recent.holding(offset) is not None
        return is_begin_known and recent.position_of(end_offset) is not None

    def _position_of(self, end_offset: int) -> int:
        """Return where the first batch begins that reaches `end_offset`, which may be the end."""
        known = self._recent.position_of(end_offset)
        if known is not None:
            return known
        written = self._written
        if end_offset == written.end_offset:
            # The batch that lies there may not be written yet.
            return written.size
        behind = self.find(end_offset)
        return self.size if behind is None else behind[0]

    def offset_beyond(self, position: int) -> int | None:
        """Return the offset of the first index entry at `position` or after it, if there is one.

        What is read of the segment up to `position` has no offset above that (Kafka's
        fetchUpperBoundOffset).
        """
        self._demand_indexes()
        return self.offset_index.first_offset_from(position)

    def _whole_batches(self, data: memoryview, position: int, *, end_offset: int) -> int:
        """Return the size of the whole batches in `data` below `end_offset`."""
        used = 0
        while (header := header_at(data, used)) is not None:
            problem = header.problem()
            if problem is not None:
                raise self.damage(problem, position + used)
            if header.next_offset > end_offset or used + header.size > len(data):
                break
            used += header.size
        return used

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and all after it, durably."""
        with disk_errors(self.path, "truncating"):
            found = self.find(offset)
            if found is None:
                return
            position, _ = found
            end_offset = self.end_before(offset)
            self.offset_index.truncate_to(offset)
            self.time_index.truncate_to(offset)
            self.transaction_index.truncate_to(offset)
            self._recent.forget()
            self.end_offset = end_offset
            self.size = position
            self.file.truncate(position)
            self.file.sync()
            self._refresh_timestamps()
        self._bytes_since_index_entry = 0
        self._offset_file.cut()
        self._time_file.cut()

    def cut_file(self) -> None:
        """Remove the bytes after the last known batch, durably."""
        with disk_errors(self.path, "cutting the torn end off"):
            self.file.truncate(self.size)
            self.file.sync()

    def _refresh_timestamps(self) -> None:
        """Find the highest remaining timestamp, from the last entry of the time index on."""
        if self.size == 0:
            self._first_timestamp = NO_TIMESTAMP
        self._max_timestamp, self._max_timestamp_offset = self.time_index.last
        position = self.offset_index.position_before(self._max_timestamp_offset)
        try:
            for _, header in scan_batches(
                self.file, position=position, end=self.size, verify=False
            ):
                if header.max_timestamp > self._max_timestamp:
                    self._max_timestamp = header.max_timestamp
                    self._max_timestamp_offset = header.last_offset
        except BadBatchError as error:
            raise self.damage(error.problem, error.position) from error

    def sync(self) -> None:
        """Make everything written to the segment durable."""
        with disk_errors(self.path, "syncing"):
            self.file.sync()

    def sync_with_indexes(self) -> None:
        """Make segment and indexes durable; indexes that were never loaded did not change."""
        self.sync()
        if self._has_indexes:
            self._offset_file.sync()
            self._time_file.sync()
        self.transaction_index.sync()

    def close(self) -> None:
        """Close the files."""
        for handle in (self.file, self._offset_file, self._time_file, self.transaction_index):
            with suppress(OSError):
                handle.close()

    def mark_deleted(self) -> list[Path]:
        """Rename the files to ``*.deleted`` and return the new names; the segment is closed."""
        self.close()
        return self._rename_files(self._suffix + DELETED_SUFFIX)

    def change_suffix(self, suffix: str) -> None:
        """Rename the files to those of a segment that ends in `suffix`, the .log file first.

        They are opened again under their new names; no other thread may use the segment meanwhile.
        """
        self._rename_files(suffix)
        self._suffix = suffix
        self.path = self._path(LOG_SUFFIX)
        self._offset_file.move_to(self._path(OFFSET_INDEX_SUFFIX))
        self._time_file.move_to(self._path(TIME_INDEX_SUFFIX))
        self.transaction_index.move_to(self._path(TRANSACTION_INDEX_SUFFIX))
        with disk_errors(self.path, "opening"):
            self.file.close()
            self.file = self._files.open(self.path)

    def _rename_files(self, suffix: str) -> list[Path]:
        """Let the files end in another suffix; return the new paths of those that there are."""
        renamed: list[Path] = []
        for kind in SEGMENT_SUFFIXES:
            path = self._path(kind)
            target = self._directory / (offset_name(self.base_offset, kind) + suffix)
            with disk_errors(path, "renaming"):
                if self._files.exists(path):
                    self._files.rename(path, target)
                    renamed.append(target)
        return renamed

    def remove_files(self) -> None:
        """Remove the files; the segment is closed."""
        for kind in SEGMENT_SUFFIXES:
            with disk_errors(self._path(kind), "removing"):
                self._files.remove(self._path(kind))

    def position_before(self, offset: int) -> int:
        """Return the start of a batch, from which batches lead to the one that holds `offset`."""
        self._demand_indexes()
        return self.offset_index.position_before(offset)

    @property
    def index_sizes(self) -> tuple[int, int]:
        """The bytes of the offset index and of the time index."""
        self._demand_indexes()
        return self.offset_index.size, self.time_index.size

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, NO_TIMESTAMP without one."""
        self._demand_indexes()
        return self._first_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of a record; without any, when the file was last changed."""
        timestamp = self.max_timestamp
        return self.modified_ms if timestamp < 0 else timestamp

    @property
    def modified_ms(self) -> int:
        """When the .log file was last changed, in milliseconds of the wall clock."""
        with disk_errors(self.path, "looking"):
            return self._files.modified_ms(self.path)

    def set_modified_ms(self, time_ms: int) -> None:
        """Let the files count as last changed at another time."""
        for kind in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            with disk_errors(self._path(kind), "setting the time of change"):
                self._files.set_modified_ms(self._path(kind), time_ms)

    def damage(self, problem: str, position: int) -> CorruptLogError:
        """Return the error for damage at a byte of the .log file."""
        return CorruptLogError(problem, file=self.path, offset=position, advice=_DAMAGE_ADVICE)
