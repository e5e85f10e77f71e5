"""The records that dead letters are copies of, as far as they may be in memory together."""

from collections.abc import Iterable
from typing import NamedTuple

from kvorum.wire.records import Record, RecordBatch, RecordData
from kvorum.wire.records.legacy import Entry, LegacyMessage
from kvorum.wire.records.record import write_numbered


class OriginalRecord(NamedTuple):
    """The parts of a record that are copied."""

    key: bytes | None
    value: bytes | None


class OriginalRecords:
    """Collects the records from an offset to another one (ShareGroupDLQRecordFetcher).

    They have `bytes_max` bytes together at most. A record that has more by itself is left out, and
    so are all records of a compressed batch that has more when it is unpacked.
    """

    def __init__(self, first_offset: int, last_offset: int, bytes_max: int) -> None:
        self.records: dict[int, OriginalRecord] = {}
        """The records, by their offsets."""
        self.next_offset = first_offset
        """The first offset of which it is not known whether its record is there."""
        self._last_offset = last_offset
        self._bytes_max = bytes_max
        self._bytes = 0
        self._is_full = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is to be read now."""
        return self._is_full or self.next_offset > self._last_offset

    def give_up(self) -> None:
        """Leave out all records that are not known yet."""
        self.next_offset = self._last_offset + 1

    def collect(self, entries: Iterable[Entry]) -> None:
        """Take the records of batches that were read from `next_offset` on.

        Raises CorruptBatchError.
        """
        for entry in entries:
            if self.is_complete:
                return
            self._collect_from(entry)

    def _collect_from(self, entry: Entry) -> None:
        for record in self._records_of(entry):
            if record.offset < self.next_offset:
                continue
            if record.offset > self._last_offset:
                break
            size = _size_of(record, entry)
            if size <= self._bytes_max:
                if self._bytes + size > self._bytes_max:
                    self._is_full = True
                    return
                self.records[record.offset] = OriginalRecord(record.key, record.value)
                self._bytes += size
            self.next_offset = record.offset + 1
        # The last offsets of a batch may have no records any more.
        self.next_offset = max(self.next_offset, entry.next_offset)

    def _records_of(self, entry: Entry) -> Iterable[Record | LegacyMessage]:
        """Return the records of a batch; none of those that unpack to more than there may be."""
        if isinstance(entry, LegacyMessage):
            return entry.records()
        content = entry.small_content(self._bytes_max) if entry.is_packed else entry.content()
        return () if content is None else content.records()


def _size_of(record: Record | LegacyMessage, entry: Entry) -> int:
    """Return the size of a record in a batch that is not packed."""
    if isinstance(record, LegacyMessage):
        data = RecordData(record.value, record.key)
        return len(write_numbered([(0, data)]).data)
    assert isinstance(entry, RecordBatch)
    data = RecordData(record.value, record.key, record.timestamp, record.headers)
    number = record.offset - entry.base_offset
    return len(write_numbered([(number, data)], entry.base_timestamp).data)
