"""The indexes of one segment, and the timestamps that the time index is made of.

Two are sparse and have files, which Kafka's tools read too. The third has the places of the latest
batches, in memory alone.
"""

from contextlib import suppress
from pathlib import Path

from kvorum.storage.errors import DiskError, TooManyOpenFilesError
from kvorum.storage.files import FileSystem, ReadableFile
from kvorum.storage.log.batch_header import BatchHeader
from kvorum.storage.log.disk_queue import WriteOrder
from kvorum.storage.log.indexes import NO_TIMESTAMP, IndexFile, OffsetIndex, TimeIndex
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.recent_batches import RecentBatches
from kvorum.storage.log.segment_files import SegmentFiles
from kvorum.storage.log.segment_scan import scan_batches
from kvorum.storage.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX


class SegmentIndexes:
    """The indexes in memory and the files of two; each batch is noted once, in order."""

    def __init__(
        self, base_offset: int, names: SegmentFiles, *, files: FileSystem, config: LogConfig
    ) -> None:
        size_bytes_max = config.index_size_bytes_max
        self.offset = OffsetIndex(base_offset, size_bytes_max=size_bytes_max)
        self.time = TimeIndex(base_offset, size_bytes_max=size_bytes_max)
        self.recent = RecentBatches(base_offset)
        self.first_timestamp = NO_TIMESTAMP
        """The largest timestamp of the first batch, NO_TIMESTAMP without one."""
        self.max_timestamp = NO_TIMESTAMP
        """The largest timestamp of a record, NO_TIMESTAMP without one."""
        self._max_timestamp_offset = base_offset
        self._names = names
        self._interval_bytes = config.index_interval_bytes
        self._bytes_since_entry = 0
        self.has_new_entries = False
        """Whether `store_new` has something to do."""
        self._closing_entry: tuple[int, int] | None = None
        """The entry of the time index that closed the segment, as `TimeIndex.last` has it."""
        self._offset_file = IndexFile(names.path(OFFSET_INDEX_SUFFIX), self.offset, files=files)
        self._time_file = IndexFile(names.path(TIME_INDEX_SUFFIX), self.time, files=files)

    @property
    def is_full(self) -> bool:
        """Whether one of the sparse indexes has no place left."""
        return self.offset.is_full or self.time.is_full

    def note(self, position: int, header: BatchHeader) -> None:
        """Note the batch in the file at `position`.

        The sparse indexes get an entry for it if more bytes than the interval lie after the last
        one: Kafka's rule when appending and when recovering.
        """
        size = header.size
        if position == 0:
            self.first_timestamp = header.max_timestamp
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset
        if self._bytes_since_entry > self._interval_bytes:
            self.offset.add(offset=header.last_offset, position=position)
            self.time.add(timestamp=self.max_timestamp, offset=self._max_timestamp_offset)
            self._bytes_since_entry = 0
            self.has_new_entries = True
        self._bytes_since_entry += size
        self.recent.add(next_offset=header.next_offset, end=position + size)

    def load(self) -> bool:
        """Load the files; return whether both are sound."""
        is_loaded = self._offset_file.load() and self._time_file.load()
        self.max_timestamp, self._max_timestamp_offset = self.time.last
        return is_loaded

    def forget(self) -> None:
        """Forget all batches, before they are noted again."""
        self.offset.load(b"")
        self.time.load(b"")
        self.recent.forget()
        self.max_timestamp, self._max_timestamp_offset = self.time.last
        self._bytes_since_entry = 0

    def store_new(self, order: WriteOrder) -> None:
        """Append new entries to the files, in the `order` of the log's writes.

        Entries that are not stored for want of a descriptor are stored with later ones.
        """
        with suppress(TooManyOpenFilesError):
            self._offset_file.store_new(order)
            self._time_file.store_new(order)
            self.has_new_entries = False

    def store_all(self) -> list[Path]:
        """Make the files hold exactly the entries; return the ones that changed."""
        return [file.path for file in (self._offset_file, self._time_file) if file.store_all()]

    def store_last_timestamp(self, order: WriteOrder) -> None:
        """Add the entry that closes the segment to index and file, in the `order` of writes."""
        self.add_last_timestamp()
        self._time_file.store_new(order)

    def add_last_timestamp(self) -> None:
        """Add the entry that closes the segment: the highest timestamp."""
        before = self.time.last
        if self.max_timestamp != NO_TIMESTAMP:
            self.time.add(
                timestamp=self.max_timestamp, offset=self._max_timestamp_offset, is_last=True
            )
        if self.time.last != before:
            self._closing_entry = self.time.last

    def drop_closing_entry(self) -> None:
        """Remove the entry that closed the segment, because the segment goes on.

        An index that is rebuilt from the segment does not have it.
        """
        if self._closing_entry is None or self.time.last != self._closing_entry:
            return
        timestamp, offset = self._closing_entry
        self.time.remove_last()
        try:
            self._time_file.cut()
        except DiskError:
            self.time.add(timestamp=timestamp, offset=offset, is_last=True)
            raise
        self._closing_entry = None

    def truncate_to(self, offset: int) -> None:
        """Remove the entries for `offset` and above; `cut_files` removes them from the files."""
        self.offset.truncate_to(offset)
        self.time.truncate_to(offset)
        self.recent.forget()
        self._bytes_since_entry = 0

    def find_timestamps(self, file: ReadableFile, size: int) -> None:
        """Find the timestamps of what is left, from the last entry of the time index on.

        Raises BadBatchError.
        """
        if size == 0:
            self.first_timestamp = NO_TIMESTAMP
        self.max_timestamp, self._max_timestamp_offset = self.time.last
        position = self.offset.position_before(self._max_timestamp_offset)
        for _, header in scan_batches(file, position=position, end=size, verify=False):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self._max_timestamp_offset = header.last_offset

    def cut_files(self) -> None:
        """Remove from the files what is no longer among the entries."""
        self._offset_file.cut()
        self._time_file.cut()

    def sync(self) -> None:
        """Make the files durable."""
        self._offset_file.sync()
        self._time_file.sync()

    def follow_names(self) -> None:
        """Go on with the files under their new names."""
        self._offset_file.move_to(self._names.path(OFFSET_INDEX_SUFFIX))
        self._time_file.move_to(self._names.path(TIME_INDEX_SUFFIX))

    def close(self) -> None:
        """Close the files."""
        for file in (self._offset_file, self._time_file):
            with suppress(OSError):
                file.close()
