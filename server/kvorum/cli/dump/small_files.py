"""The small files of a segment: two indexes, aborted transactions, producer snapshots."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kvorum.cli.dump.errors import DamagedFileError
from kvorum.cli.dump.log_text import latest_timestamp
from kvorum.inspection.reading import OFFSET_ENTRY, TIME_ENTRY, offset_entries, time_entries
from kvorum.wire.checksums import crc32c
from kvorum.wire.errors import WireError
from kvorum.wire.messages.producer_snapshot import ProducerSnapshot
from kvorum.wire.records.legacy import Entry, read_entries

_ABORTED_TRANSACTION = struct.Struct(">hqqqq")
_SNAPSHOT_VERSION = struct.Struct(">h")
_SNAPSHOT_CRC_END = 6
_SEQUENCE_MASK = 0x7FFF_FFFF
_NO_TIMESTAMP = -1


@dataclass(slots=True)
class Findings:
    """The differences between an index and its log, as pairs of the two values."""

    offset_mismatches: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    time_mismatches: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    unordered_times: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    missing_offsets: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class IndexedLog(NamedTuple):
    """The log that an offset index points into, and the largest batch that is read of it."""

    data: memoryview
    message_bytes_max: int

    def batch_at(self, position: int) -> Entry:
        """Return the batch at a position; DamagedFileError without one of that size."""
        if self.message_bytes_max < 0:
            raise DamagedFileError(f"--max-message-size is {self.message_bytes_max}")
        size_max = self.message_bytes_max
        part = self.data[position : position + size_max]
        batch = next(read_entries(part, is_cut_allowed=True), None)
        if batch is None:
            raise DamagedFileError(
                f"no batch of up to {size_max} bytes (--max-message-size) at position {position}"
            )
        return batch


def check_offset_index(data: bytes, base_offset: int, name: str) -> None:
    """Raise DamagedFileError for an offset index that a broker would rebuild."""
    entries = offset_entries(data, base_offset)
    if entries and entries[-1][0] < base_offset:
        raise DamagedFileError(
            f"Corrupt index found, index file ({name}) has non-zero size but the last offset is "
            f"{entries[-1][0]} which is less than the base offset {base_offset}."
        )
    _check_length(data, OFFSET_ENTRY.size, name)


def check_time_index(data: bytes, base_offset: int, name: str) -> None:
    """Raise DamagedFileError for a time index that a broker would rebuild."""
    entries = time_entries(data, base_offset)
    if entries and entries[-1][0] < entries[0][0]:
        raise DamagedFileError(
            f"Corrupt time index found, time index file ({name}) has non-zero size but the last "
            f"timestamp is {entries[-1][0]} which is less than the first timestamp {entries[0][0]}"
        )
    if entries and entries[-1][1] < base_offset:
        raise DamagedFileError(
            f"Corrupt time index found, time index file ({name}) has non-zero size but the last "
            f"offset is {entries[-1][1]} which is less than the first offset {base_offset}"
        )
    _check_length(data, TIME_ENTRY.size, name)


def _check_length(data: bytes, entry_size: int, name: str) -> None:
    if len(data) % entry_size != 0:
        raise DamagedFileError(
            f"Corrupt index found, index file ({name}) has a size of {len(data)} bytes, which is "
            f"not a multiple of {entry_size}"
        )


def offset_index_lines(
    data: bytes, log: IndexedLog, *, base_offset: int, findings: Findings
) -> Iterator[str]:
    """Yield the entries of an offset index, each compared with the batch it points at."""
    for number, (offset, position) in enumerate(offset_entries(data, base_offset)):
        # An index file is longer than its entries: the rest are zeros.
        if offset == base_offset and number > 0:
            return
        if position < 0:
            raise DamagedFileError(f"offset {offset} points at position {position}")
        batch = log.batch_at(position)
        if batch.last_offset != offset:
            findings.offset_mismatches.append((offset, batch.last_offset))
        yield f"offset: {offset} position: {position}"


def time_index_lines(
    data: bytes, offsets: bytes, log: memoryview, *, base_offset: int, findings: Findings
) -> Iterator[str]:
    """Yield the entries of a time index, each compared with the batch its offset is in."""
    places = offset_entries(offsets, base_offset)
    previous = _NO_TIMESTAMP
    for number, (timestamp, offset) in enumerate(time_entries(data, base_offset)):
        if offset == base_offset and number > 0:
            return
        position = max((place for known, place in places if known <= offset), default=0)
        batches = read_entries(log[position:], is_cut_allowed=True)
        batch = next((each for each in batches if each.last_offset >= offset), None)
        if batch is None or batch.last_offset != offset:
            found = -1 if batch is None else batch.last_offset
            findings.missing_offsets.append((offset, found))
        else:
            latest = latest_timestamp(batch)
            if latest != timestamp:
                findings.time_mismatches.append((timestamp, latest))
            if previous >= timestamp:
                findings.unordered_times.append((timestamp, previous))
        yield f"timestamp: {timestamp} offset: {offset}"
        previous = timestamp


def transaction_index_lines(data: bytes) -> Iterator[str]:
    """Yield the aborted transactions of a segment."""
    whole = len(data) - len(data) % _ABORTED_TRANSACTION.size
    for version, producer, first, last, stable in _ABORTED_TRANSACTION.iter_unpack(data[:whole]):
        if version != 0:
            raise DamagedFileError(
                f"unknown version {version} of an aborted transaction (only 0 is known)"
            )
        yield (
            f"version: {version} producerId: {producer} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}"
        )


def producer_snapshot_lines(data: bytes) -> Iterator[str]:
    """Yield the producers of a producer snapshot; raise DamagedFileError before the first line."""
    try:
        version = int(_SNAPSHOT_VERSION.unpack_from(data)[0])
        if version != 1:
            raise DamagedFileError(f"Snapshot contained an unknown file version {version}")
        snapshot, _ = ProducerSnapshot.decode_from(data, _SNAPSHOT_VERSION.size, version)
    except (DamagedFileError, WireError, struct.error) as error:
        raise DamagedFileError(f"Snapshot failed schema validation: {error}") from error
    computed = crc32c(data[_SNAPSHOT_CRC_END:])
    if snapshot.crc != computed:
        raise DamagedFileError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {snapshot.crc}. Computed "
            f"crc: {computed}"
        )
    yield from map(_producer_line, snapshot.producer_entries)


def _producer_line(entry: ProducerSnapshot.ProducerEntry) -> str:
    first = entry.current_txn_first_offset
    first_text = f"OptionalLong[{first}]" if first >= 0 else "OptionalLong.empty"
    line = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
        f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {first_text} "
        f"lastTimestamp: {entry.timestamp}"
    )
    if entry.last_offset < 0:
        return line
    first_sequence = (entry.last_sequence - entry.offset_delta) & _SEQUENCE_MASK
    return (
        f"{line} firstSequence: {first_sequence} lastSequence: {entry.last_sequence} "
        f"lastOffset: {entry.last_offset} offsetDelta: {entry.offset_delta} "
        f"timestamp: {entry.timestamp}"
    )
