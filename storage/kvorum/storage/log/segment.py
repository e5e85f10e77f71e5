"""One segment of the log: a .log file with its indexes."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from kvorum.storage.errors import CorruptLogError, DiskError
from kvorum.storage.files import FileSystem, OpenFile, disk_error, disk_errors
from kvorum.storage.log.adopted_segment import AdoptedSegment
from kvorum.storage.log.batch_header import BatchHeader, continues
from kvorum.storage.log.batch_search import find_batch, find_end_before, whole_batches_size
from kvorum.storage.log.disk_queue import IN_PLACE, WriteOrder
from kvorum.storage.log.file_records import FileRecords
from kvorum.storage.log.indexes import RELATIVE_OFFSET_MAX
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.log_file import LogFile, SegmentRollbackError, WrittenPart
from kvorum.storage.log.recent_batches import BatchPlace
from kvorum.storage.log.segment_files import SegmentFiles
from kvorum.storage.log.segment_indexes import SegmentIndexes
from kvorum.storage.log.segment_scan import BadBatchError
from kvorum.storage.log.transaction_index import TransactionIndex
from kvorum.storage.names import DELETED_SUFFIX, LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX

_DAMAGE_ADVICE: Final = (
    "Stop the node, keep a copy of the directory, and let it fetch the log anew from the quorum"
)


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
        self.begun_ms: int | None = None
        """When this process began or opened the segment, if rolling by the wall clock is wanted."""
        self.roll_jitter_ms = 0
        """By how much earlier than segment.ms says the segment ends."""
        self._may_have_gaps = config.may_have_gaps
        self._adopted: AdoptedSegment | None = None
        """The segment as it was adopted, until the indexes are loaded at its first use."""
        self._loading = threading.Lock()
        self._names = SegmentFiles(directory, base_offset, suffix=suffix, files=files)
        self._log = LogFile(self._names.path(LOG_SUFFIX), base_offset, files=files, create=create)
        self._indexes = SegmentIndexes(base_offset, self._names, files=files, config=config)
        self.transaction_index = TransactionIndex(
            self._names.path(TRANSACTION_INDEX_SUFFIX), base_offset, files=files
        )

    @property
    def path(self) -> Path:
        """The path of the .log file."""
        return self._log.path

    @property
    def file(self) -> OpenFile:
        """The open .log file."""
        return self._log.file

    def adopt(self, end_offset: int, *, is_last: bool = False) -> None:
        """Adopt a sound file that ends at `end_offset`; it is not read before its first use.

        The first use checks the batches after the last index entry against that end. In a log with
        gaps they may end before it, except in the last segment, and `end_offset` is then corrected.
        """
        with disk_errors(self.path, "opening"):
            self.size = self.file.size()
        self.end_offset = end_offset
        self._adopted = AdoptedSegment(
            self._log,
            self.size,
            end_offset,
            may_have_gaps=self._may_have_gaps,
            may_end_before=self._may_have_gaps and not is_last,
        )
        self._indexes.recent.forget()

    @property
    def indexes(self) -> SegmentIndexes:
        """The indexes; the first use of an adopted segment loads them."""
        if self._adopted is not None:
            self._load_indexes()
        return self._indexes

    def _load_indexes(self) -> None:
        """Load the indexes of an adopted segment, which corrects its end."""
        with self._loading, self._reading():
            # The cleaner, in its thread, may have been the first to ask.
            if self._adopted is not None:
                self.end_offset = self._adopted.load(self._indexes)
                self._adopted = None

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
        indexes = self.indexes
        age_ms = 0
        if indexes.first_timestamp >= 0:
            age_ms = max_timestamp - indexes.first_timestamp
        elif now_ms is not None and self.begun_ms is not None:
            age_ms = now_ms - self.begun_ms
        return (
            self.size > config.segment_bytes - incoming_bytes
            or age_ms > config.segment_ms - self.roll_jitter_ms
            or indexes.is_full
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def append(
        self, data: memoryview, headers: Sequence[BatchHeader], order: WriteOrder = IN_PLACE
    ) -> None:
        """Write batches after the last one and index them, in the `order` of the log's writes.

        A DiskError leaves the segment as it was. SegmentRollbackError means that even that failed;
        then nothing more may be written before the directory is opened again.
        """
        indexes = self.indexes
        indexes.drop_closing_entry()
        position = self.size
        written = WrittenPart(position + len(data), headers[-1].next_offset)
        order.do(partial(self._log.write, data, position, written))
        for header in headers:
            indexes.note(position, header)
            position += header.size
        self.size = written.size
        self.end_offset = written.end_offset
        if not indexes.has_new_entries:
            return
        try:
            indexes.store_new(order)
        except DiskError as error:
            raise SegmentRollbackError(error.problem, errno=error.errno, file=self.path) from error

    def continues(self, header: BatchHeader) -> bool:
        """Return whether a batch may follow the last one of the segment."""
        return header.last_offset - self.base_offset <= RELATIVE_OFFSET_MAX and continues(
            header.base_offset, self.end_offset, may_have_gaps=self._may_have_gaps
        )

    def note_batch(self, position: int, header: BatchHeader) -> None:
        """Account for a batch that was found in the file at `position`."""
        self._indexes.note(position, header)
        self.size = position + header.size
        self.end_offset = header.next_offset

    def seal(self, order: WriteOrder = IN_PLACE) -> None:
        """Add the highest timestamp to the time index, as in a complete segment.

        An adopted segment that has not been used since has that entry already.
        """
        self._indexes.recent.forget()
        if self._adopted is None:
            self._indexes.store_last_timestamp(order)

    def store_indexes(self) -> list[Path]:
        """Make the index files those of a closed segment; return the ones that changed."""
        self._indexes.add_last_timestamp()
        return self._indexes.store_all()

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, NO_TIMESTAMP without one."""
        return self.indexes.first_timestamp

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of a record, NO_TIMESTAMP without one."""
        return self.indexes.max_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of a record; without any, when the file was last changed."""
        timestamp = self.max_timestamp
        return self.modified_ms if timestamp < 0 else timestamp

    @property
    def modified_ms(self) -> int:
        """When the .log file was last changed, in milliseconds of the wall clock."""
        return self._names.modified_ms

    def set_modified_ms(self, time_ms: int) -> None:
        """Let the files count as last changed at another time."""
        self._names.set_modified_ms(time_ms)

    @property
    def index_sizes(self) -> tuple[int, int]:
        """The bytes of the offset index and of the time index."""
        indexes = self.indexes
        return indexes.offset.size, indexes.time.size

    def offset_before(self, timestamp: int) -> int:
        """Return an offset before which no record has `timestamp` or a later one."""
        return self.indexes.time.offset_before(timestamp)

    def position_before(self, offset: int) -> int:
        """Return the start of a batch, from which batches lead to the one that holds `offset`."""
        return self.indexes.offset.position_before(offset)

    def offset_beyond(self, position: int) -> int | None:
        """Return the offset of the first index entry at `position` or after it, if there is one.

        What is read of the segment up to `position` has no offset above that (Kafka's
        fetchUpperBoundOffset).
        """
        return self.indexes.offset.first_offset_from(position)

    def reaches(self, offset: int) -> bool:
        """Return whether a batch of the segment ends at `offset` or after it."""
        if self._adopted is not None:
            self._load_indexes()
        return self.size > 0 and offset < self.end_offset

    def find(self, offset: int) -> tuple[int, BatchHeader] | None:
        """Return position and header of the batch that holds `offset`, or None above the end.

        In a log with gaps the batch may begin above `offset`.
        """
        with self._reading():
            return self._find(offset)

    def _find(self, offset: int) -> tuple[int, BatchHeader] | None:
        if offset >= self.end_offset or not self.reaches(offset):
            return None
        return find_batch(
            self.file,
            self._indexes.offset,
            offset,
            size=self.size,
            may_have_gaps=self._may_have_gaps,
        )

    def end_before(self, offset: int) -> int:
        """Return where the batches end that lie wholly below `offset`."""
        indexes = self.indexes
        with self._reading():
            return find_end_before(self.file, indexes.offset, offset, size=self.size)

    def read(self, offset: int, *, max_bytes: int, end_offset: int) -> memoryview:
        """Return whole batches from the one that holds `offset`, none of it at `end_offset`.

        At most `max_bytes`, but at least one batch; nothing where the first reaches `end_offset`.
        """
        with self._reading():
            found = self._find(offset)
            if found is None or found[1].next_offset > end_offset:
                return memoryview(b"")
            position, first = found
            wanted = min(max(max_bytes, first.size), self.size - position)
            data = memoryview(self.file.read_at(position, wanted))
            return data[: whole_batches_size(data, position, end_offset=end_offset)]

    def read_range(self, offset: int, *, max_bytes: int, end_offset: int) -> FileRecords | None:
        """Return the bytes from the batch that holds `offset` on, as Kafka's LogSegment.read does.

        At most `max_bytes`, by which the last batch may be cut off, but all of the first batch;
        nothing of a batch that reaches `end_offset`. None where no batch ends behind `offset`. The
        headers on the way to the first batch are checked, the records are not looked at.
        """
        with self._reading():
            first = self._indexes.recent.holding(offset) or self._find_place(offset)
            if first is None:
                return None
            end = self._position_of(end_offset)
            size = max(min(max(max_bytes, first.size), end - first.position), 0)
            return FileRecords(self._log.file, first.position, size)

    def is_at_hand(self, offset: int, end_offset: int) -> bool:
        """Return whether `read_range` finds the records without reading the file."""
        recent = self._indexes.recent
        is_begin_known = recent.holding(offset) is not None
        return is_begin_known and recent.position_of(end_offset) is not None

    def _find_place(self, offset: int) -> BatchPlace | None:
        found = self._find(offset)
        return None if found is None else BatchPlace(found[0], found[1].size)

    def _position_of(self, end_offset: int) -> int:
        """Return where the first batch begins that reaches `end_offset`, which may be the end."""
        known = self._indexes.recent.position_of(end_offset)
        if known is not None:
            return known
        written = self._log.written
        if end_offset == written.end_offset:
            # The batch that lies there may not be written yet.
            return written.size
        behind = self._find(end_offset)
        return self.size if behind is None else behind[0]

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and all after it, durably."""
        with self._reading("truncating"):
            found = self._find(offset)
            if found is None:
                return
            position, _ = found
            indexes = self._indexes
            end_offset = find_end_before(self.file, indexes.offset, offset, size=self.size)
            indexes.truncate_to(offset)
            self.transaction_index.truncate_to(offset)
            self.end_offset = end_offset
            self.size = position
            self._log.cut(position)
            indexes.find_timestamps(self.file, position)
        indexes.cut_files()

    def cut_file(self) -> None:
        """Remove the bytes after the last known batch, durably."""
        with disk_errors(self.path, "cutting the torn end off"):
            self._log.cut(self.size)

    def sync(self) -> None:
        """Make everything written to the segment durable."""
        self._log.sync()

    def sync_with_indexes(self) -> None:
        """Make segment and indexes durable; indexes that were never loaded did not change."""
        self.sync()
        if self._adopted is None:
            self._indexes.sync()
        self.transaction_index.sync()

    def close(self) -> None:
        """Close the files."""
        for part in (self._log, self._indexes, self.transaction_index):
            with suppress(OSError):
                part.close()

    def mark_deleted(self) -> list[Path]:
        """Rename the files to ``*.deleted`` and return the new names; the segment is closed."""
        self.close()
        return self._names.rename(self._names.suffix + DELETED_SUFFIX)

    def change_suffix(self, suffix: str) -> None:
        """Rename the files to those of a segment that ends in `suffix`, the .log file first.

        They are opened again under their new names; no other thread may use the segment meanwhile.
        """
        self._names.rename(suffix)
        self._names.suffix = suffix
        self._indexes.follow_names()
        self.transaction_index.move_to(self._names.path(TRANSACTION_INDEX_SUFFIX))
        self._log.move_to(self._names.path(LOG_SUFFIX))

    def remove_files(self) -> None:
        """Remove the files; the segment is closed."""
        self._names.remove()

    def damage(self, problem: str, position: int) -> CorruptLogError:
        """Return the error for damage at a byte of the .log file."""
        return CorruptLogError(problem, file=self.path, offset=position, advice=_DAMAGE_ADVICE)

    @contextmanager
    def _reading(self, doing: str = "reading") -> Generator[None]:
        """Turn an OSError into a DiskError, and a batch that is not sound into damage."""
        try:
            yield
        except OSError as error:
            raise disk_error(error, path=self.path, doing=doing) from error
        except BadBatchError as error:
            raise self.damage(error.problem, error.position) from error
