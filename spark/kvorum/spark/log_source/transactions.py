"""The outcomes of the transactions of a log's producers, by the markers in the log.

A marker is a control batch of the producer that comes after the transaction's records, maybe far
after them, in a later segment. So the headers after a range are looked through until every
transaction that the range has records of has ended; only one that never ended is looked for up to
the end of the log.

A node may write to the log meanwhile. Bytes at its end that are not a batch yet hide nothing, and
the headers after a range are read on from where they begin. A segment that is gone hides all that
did not end before it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import closing
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kvorum.log_files.batch_places import (
    Bounds,
    end_looks_torn,
    entry_header_at,
    header_problem,
    next_sound_batch,
)
from kvorum.log_files.file_systems import FileWindow, files_at
from kvorum.log_files.find import FileKind, LogFile, recognised
from kvorum.log_files.ranges import FileRange
from kvorum.storage.log.batch_header import BatchHeader
from kvorum.storage.metadata_log.control_batch import first_control_record
from kvorum.wire.records import ControlRecordType, RecordBatch
from kvorum.wire.records.batch import TRANSACTIONAL

NEVER: Final = 1 << 63
"""An offset greater than every other."""


class TransactionState(Enum):
    """The end of a transaction; the value is that of the `transaction` column."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


_ENDS: Final[Mapping[int, TransactionState]] = MappingProxyType(
    {
        ControlRecordType.COMMIT: TransactionState.COMMITTED,
        ControlRecordType.ABORT: TransactionState.ABORTED,
    }
)


class _Marker(NamedTuple):
    offset: int
    state: TransactionState


class _Seen(NamedTuple):
    """A transactional batch: the marker that ends a transaction, or records of one (None)."""

    offset: int
    producer_id: int
    state: TransactionState | None


class TransactionOutcomes:
    """The states of the transactions that a range has records of.

    Nothing is read until the first batch of a transaction is asked for. Reading raises OSError.
    """

    def __init__(self, unit: FileRange, file_system_options: Mapping[str, Any]) -> None:
        self._unit = unit
        self._files = files_at(unit.file.path, file_system_options)
        self._markers: dict[int, list[_Marker]] | None = None
        self._last_offset = unit.start.offset
        self._torn_at: int | None = None
        # Each is the last offset before a place that is damaged, in ascending order.
        self._damaged: list[int] = []

    def state_of(self, batch: RecordBatch) -> TransactionState | None:
        """Return how the transaction of a batch ended.

        None where that is not known, because a place between it and the next marker is damaged or
        gone.
        """
        if self._markers is None:
            self._markers = {}
            try:
                self._read_markers(self._markers)
            except FileNotFoundError:
                self._damaged.append(NEVER)
        offset = batch.base_offset
        markers = self._markers.get(batch.producer_id, [])
        index = bisect_left(markers, offset, key=lambda marker: marker.offset)
        end = markers[index] if index < len(markers) else _Marker(NEVER, TransactionState.OPEN)
        damaged = bisect_left(self._damaged, offset)
        if damaged < len(self._damaged) and self._damaged[damaged] <= end.offset:
            return None
        return end.state

    def _read_markers(self, found: dict[int, list[_Marker]]) -> None:
        """Find the markers by producer, up to where no transaction of the range is open."""
        unit = self._unit
        open_ones: set[int] = set()
        for seen in self._in_file(unit.file, unit.start.position, unit.end):
            if seen.state is None:
                open_ones.add(seen.producer_id)
            else:
                found.setdefault(seen.producer_id, []).append(_Marker(seen.offset, seen.state))
                open_ones.discard(seen.producer_id)
        if not open_ones:
            return
        for seen in self._after_range():
            if seen.state is not None:
                found.setdefault(seen.producer_id, []).append(_Marker(seen.offset, seen.state))
                open_ones.discard(seen.producer_id)
                if not open_ones:
                    return

    def _after_range(self) -> Iterator[_Seen]:
        """Yield the transactional batches after the range, in later segments too."""
        end, self._torn_at = self._unit.end if self._torn_at is None else self._torn_at, None
        yield from self._in_file(self._unit.file, end)
        for file in self._files_after():
            if self._torn_at is not None:
                # Only the last segment may have an unwritten end.
                self._damaged.append(self._last_offset)
                self._torn_at = None
            self._last_offset = max(self._last_offset, (file.offset or 0) - 1)
            yield from self._in_file(file, 0)

    def _files_after(self) -> Iterator[LogFile]:
        """Yield the segments of the same log after the range's file, listed again."""
        own = self._unit.file
        if own.offset is None:
            return
        listed = self._files.list_below(own.directory)
        yield from sorted(
            (
                file
                for file in recognised(self._files, listed)
                if file.kind is FileKind.SEGMENT
                and file.directory == own.directory
                and (file.offset or 0) > own.offset
            ),
            key=lambda file: file.order,
        )

    def _in_file(self, file: LogFile, position: int, end: int | None = None) -> Iterator[_Seen]:
        """Yield the transactional batches of a file from `position` up to `end`, or its end."""
        with closing(self._files.open(file.path)) as opened:
            yield from self._in_window(FileWindow(opened, end=end or opened.size), position)

    def _in_window(self, window: FileWindow, position: int) -> Iterator[_Seen]:
        while position < window.end:
            header = entry_header_at(window, position)
            if header is None or header_problem(header) or position + header.size > window.end:
                after = self._after_damage(window, position)
                if after is None:
                    return
                position = after
                continue
            self._last_offset = header.last_offset
            if isinstance(header, BatchHeader) and header.attributes & TRANSACTIONAL:
                state = None
                if header.is_control:
                    control = first_control_record(window.at(position, header.size), header)
                    state = None if control is None else _ENDS.get(control[0])
                if state is not None or not header.is_control:
                    yield _Seen(header.base_offset, header.producer_id, state)
            position += header.size

    def _after_damage(self, window: FileWindow, position: int) -> int | None:
        """Return where the next sound batch begins after bytes without one; note the bytes."""
        bounds = Bounds(max(self._last_offset, 0))
        after = next_sound_batch(
            window, position, header=None, bounds=bounds, end=window.end, with_legacy=True
        )
        if after is None and end_looks_torn(window, position, window.end, with_legacy=True):
            self._torn_at = position
        else:
            self._damaged.append(self._last_offset)
        return after
