"""Offset indexes and time indexes compared with the places of their segment's batches.

Each entry is looked at, where a broker's own check at a start looks at the last one only. An index
may lack entries: a sparse one is valid without any of them.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.reading import OFFSET_ENTRY, TIME_ENTRY, used_bytes
from kvorum.log_files.file_systems import FileWindow, LocalFiles
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import Entry, read_entries

_EARLY: Final = (
    "offset {offset} ends a batch behind byte {position}, where older releases let an entry point "
    "that stands for several batches"
)
"""A problem that is only noted, because older releases wrote such entries."""


class BatchPlace(NamedTuple):
    """One batch; `latest_timestamp` is the largest of the segment up to the batch before it."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    earlier_timestamp: int


class SegmentBatches:
    """The sound batches of one segment; those from `damaged_from` on cannot all be known."""

    def __init__(self, path: Path, base_offset: int, *, is_last: bool) -> None:
        self.path = path
        self.base_offset = base_offset
        self.is_last = is_last
        self.damaged_from: int | None = None
        self._positions = array("q")
        self._base_offsets = array("q")
        self._last_offsets = array("q")
        self._max_timestamps = array("q")
        self._latest_timestamps = array("q")

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def latest_timestamp(self) -> int:
        """The largest timestamp of all batches; -1 without one."""
        return self._latest_timestamps[-1] if self._latest_timestamps else -1

    def add(self, entry: Entry) -> None:
        """Take in the next batch, or message of an old format."""
        if isinstance(entry, RecordBatch):
            first, timestamp = entry.base_offset, entry.max_timestamp
        else:
            # A message that wraps others has the offset of the last one only.
            first = self._last_offsets[-1] + 1 if self._last_offsets else self.base_offset
            timestamp = entry.timestamp
        self._positions.append(entry.position)
        self._base_offsets.append(first)
        self._last_offsets.append(entry.last_offset)
        self._max_timestamps.append(timestamp)
        self._latest_timestamps.append(max(self.latest_timestamp, timestamp))

    def note_damage(self, position: int) -> None:
        """Remember where the first damage is."""
        if self.damaged_from is None:
            self.damaged_from = position

    def at_position(self, position: int) -> BatchPlace | None:
        """Return the batch that begins at `position`, or None."""
        index = bisect_left(self._positions, position)
        if index == len(self._positions) or self._positions[index] != position:
            return None
        return self._place(index)

    def holding(self, offset: int) -> BatchPlace | None:
        """Return the first batch whose last offset is `offset` or above, or None."""
        index = bisect_left(self._last_offsets, offset)
        return None if index == len(self._last_offsets) else self._place(index)

    def ends_with(self, offset: int) -> bool:
        """Return whether `offset` is the last one of some batch."""
        found = self.holding(offset)
        return found is not None and found.last_offset == offset

    def _place(self, index: int) -> BatchPlace:
        return BatchPlace(
            self._positions[index],
            self._base_offsets[index],
            self._last_offsets[index],
            self._max_timestamps[index],
            self._latest_timestamps[index - 1] if index else -1,
        )


def check_offset_index(
    path: Path, data: bytes, batches: SegmentBatches, findings: Findings
) -> None:
    """Add a finding for the first entry of an offset index that does not fit the segment."""
    last_relative, last_position = -1, -1
    for place, fields in _entries(path, data, OFFSET_ENTRY, batches, findings, Rule.OFFSET_INDEX):
        relative, position = fields
        offset = batches.base_offset + relative
        if _is_behind_damage(batches, position):
            return
        problem = None
        if relative <= last_relative or position <= last_position:
            problem = f"offset {offset} at byte {position} follows one of byte {last_position}"
        else:
            problem = _problem_of_place(batches, offset, position)
        if problem is not None:
            is_early = problem is _EARLY
            findings.add(
                Rule.OFFSET_INDEX,
                path,
                problem.format(offset=offset, position=position),
                position=place,
                offset=offset,
                severity=Severity.NOTE if is_early else Severity.DAMAGE,
            )
            if not is_early:
                return
        last_relative, last_position = relative, position


def _problem_of_place(batches: SegmentBatches, offset: int, position: int) -> str | None:
    found = batches.at_position(position)
    if found is None:
        return f"offset {offset} points at byte {position}, where no batch begins"
    if found.last_offset == offset:
        return None
    if found.last_offset < offset and batches.ends_with(offset):
        return _EARLY
    return (
        f"offset {offset} points at byte {position}, where the batch of offsets "
        f"{found.base_offset} to {found.last_offset} begins"
    )


def check_time_index(path: Path, data: bytes, batches: SegmentBatches, findings: Findings) -> None:
    """Add a finding for the first entry of a time index that does not fit the segment."""
    last_timestamp, last_relative = -1, -1
    for place, fields in _entries(path, data, TIME_ENTRY, batches, findings, Rule.TIME_INDEX):
        timestamp, relative = fields
        offset = batches.base_offset + relative
        found = batches.holding(offset)
        if found is None and batches.damaged_from is not None:
            return
        if found is not None and _is_behind_damage(batches, found.position):
            return
        problem = None
        if timestamp <= last_timestamp or relative < last_relative:
            problem = f"timestamp {timestamp} of offset {offset} follows {last_timestamp}"
        else:
            problem = _problem_of_time(batches, found, timestamp, offset)
        if problem is not None:
            findings.add(Rule.TIME_INDEX, path, problem, position=place, offset=offset)
            return
        last_timestamp, last_relative = timestamp, relative
    is_finished = not batches.is_last and batches.damaged_from is None
    if is_finished and last_timestamp < batches.latest_timestamp:
        problem = (
            f"the last entry is of timestamp {last_timestamp}, and the finished segment has "
            f"{batches.latest_timestamp}"
        )
        findings.add(Rule.TIME_INDEX, path, problem, position=len(data))


def _problem_of_time(
    batches: SegmentBatches, found: BatchPlace | None, timestamp: int, offset: int
) -> str | None:
    if found is None or offset < found.base_offset:
        return f"offset {offset}, of timestamp {timestamp}, is in no batch"
    if found.max_timestamp != timestamp:
        return (
            f"timestamp {timestamp} of offset {offset}, whose batch has {found.max_timestamp} as "
            "its largest"
        )
    if found.earlier_timestamp >= timestamp:
        return f"timestamp {timestamp} of offset {offset} was reached by a batch before it"
    if offset != found.last_offset and not _has_record(batches, found, timestamp, offset):
        return f"timestamp {timestamp} is not that of offset {offset}"
    return None


def _has_record(batches: SegmentBatches, place: BatchPlace, timestamp: int, offset: int) -> bool:
    """Return whether the record at `offset` has that timestamp.

    Most releases name the batch's last offset, some the record itself.
    """
    with closing(LocalFiles().open(str(batches.path))) as file:
        window = FileWindow(file, end=file.size)
        size = int.from_bytes(window.at(place.position + 8, 4)) + 12
        try:
            entry = next(read_entries(window.at(place.position, size)))
            return any(
                record.offset == offset and record.timestamp == timestamp
                for record in entry.records(UNLIMITED_BYTES)
            )
        except WireError:
            return False


def _is_behind_damage(batches: SegmentBatches, position: int) -> bool:
    return batches.damaged_from is not None and position >= batches.damaged_from


def _entries(
    path: Path,
    data: bytes,
    entry: struct.Struct,
    batches: SegmentBatches,
    findings: Findings,
    rule: Rule,
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield position and fields of each entry, up to the zeros that a node sets aside.

    A finished segment's index has no zeros behind its entries, and none has a part of an entry.
    """
    used = used_bytes(data, entry.size)
    whole = min(used, len(data) - len(data) % entry.size)
    for place in range(0, whole, entry.size):
        yield place, entry.unpack_from(data, place)
    if len(data) % entry.size:
        problem = f"{len(data)} bytes are no multiple of {entry.size}, the size of an entry"
        findings.add(rule, path, problem, position=len(data) - len(data) % entry.size)
    elif used < len(data) and not batches.is_last:
        problem = "zeros follow the last entry, though the segment is finished"
        findings.add(rule, path, problem, position=used)
