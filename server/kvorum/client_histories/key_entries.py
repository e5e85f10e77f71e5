"""The values of each key in the order of operations, as columns of integers.

Columns take a fraction of the memory of objects. Those of a history with millions of operations go
to a file piece by piece, and those of one key come back at a time.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Final, NamedTuple, Self

from kvorum.client_histories.spool import Spool, StoredColumn

SENT: Final = 0
"""A mark: an entry is a value that its operation sent."""
POLLED: Final = 1
"""A mark: an entry is a value that its operation polled."""
FORGOTTEN: Final = 2
"""A mark: a process lost its position in the key; the value is its number."""
NO_OFFSET: Final = -1
"""The offset of a send whose producer did not get one."""


class Entry(NamedTuple):
    """A value that an operation sent or polled.

    `time` is that of the completion for a send, and of the invocation for a poll.
    """

    operation: int
    mark: int
    offset: int
    value: int
    time: int


class EntryColumns:
    """Entries of one key, which are next to one another where they are of one operation."""

    __slots__ = ("marks", "offsets", "operations", "times", "values")

    def __init__(self) -> None:
        self.operations = array("I")
        self.marks = array("B")
        self.offsets = array("i")
        self.values = array("i")
        self.times = array("q")

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[tuple[int, int, int, int]]:
        return zip(self.operations, self.marks, self.offsets, self.values, strict=True)

    def append(self, entry: Entry) -> None:
        """Add an entry of the latest operation."""
        self.operations.append(entry.operation)
        self.marks.append(entry.mark)
        self.offsets = appended(self.offsets, entry.offset)
        self.values = appended(self.values, entry.value)
        self.times.append(entry.time)

    def append_polled(self, operation: int, records: list[tuple[int, int]], time: int) -> None:
        """Add the pairs of offset and value that the latest operation polled."""
        offsets = [offset for offset, _ in records]
        if min(offsets, default=0) < 0:
            raise ValueError(offsets)
        self.offsets = _extended(self.offsets, offsets)
        self.values = _extended(self.values, [value for _, value in records])
        self.operations.extend(repeat(operation, len(records)))
        self.marks.extend(repeat(POLLED, len(records)))
        self.times.extend(repeat(time, len(records)))

    def extend(self, others: Self) -> None:
        """Add later entries of the same key."""
        self.operations.extend(others.operations)
        self.marks.extend(others.marks)
        self.offsets = _joined(self.offsets, others.offsets)
        self.values = _joined(self.values, others.values)
        self.times.extend(others.times)

    def of_operation(self, operation: int) -> Iterator[tuple[int, int, int]]:
        """Yield the mark, offset and value of each entry of an operation."""
        place = bisect_left(self.operations, operation)
        while place < len(self.operations) and self.operations[place] == operation:
            if self.marks[place] != FORGOTTEN:
                yield self.marks[place], self.offsets[place], self.values[place]
            place += 1


class _StoredEntries(NamedTuple):
    """Entries that are in a file, and the operations that they are of."""

    first_operation: int
    last_operation: int
    columns: tuple[StoredColumn, ...]

    @classmethod
    def of(cls, entries: EntryColumns, spool: Spool) -> Self:
        """Write entries to a file."""
        columns = (getattr(entries, name) for name in EntryColumns.__slots__)
        stored = tuple(spool.store(column) for column in columns)
        return cls(entries.operations[0], entries.operations[-1], stored)

    def loaded(self, spool: Spool) -> EntryColumns:
        """Read the entries back."""
        entries = EntryColumns()
        for name, stored in zip(EntryColumns.__slots__, self.columns, strict=True):
            setattr(entries, name, spool.load(stored))
        return entries


class KeyEntries:
    """All entries of a key: who sent and polled what, where and when."""

    __slots__ = ("_pieces", "_spool", "latest", "name", "rebalanced", "unknown_sends")

    def __init__(self, name: str, spool: Spool | None) -> None:
        self.name = name
        self.latest = EntryColumns()
        """The entries that are not in the file."""
        self.rebalanced: set[int] = set()
        """The operations in which a rebalance gave or took the key."""
        self.unknown_sends: dict[int, int] = {}
        """The values that transactions of unknown outcome sent, and these transactions."""
        self._spool = spool
        self._pieces: list[_StoredEntries] = []

    def store(self) -> None:
        """Move the latest entries to the file, if there is one."""
        if self._spool is not None and self.latest:
            self._pieces.append(_StoredEntries.of(self.latest, self._spool))
            self.latest = EntryColumns()

    def all(self) -> EntryColumns:
        """Return the entries, from the file and from the memory."""
        if not self._pieces:
            return self.latest
        gathered = EntryColumns()
        for piece in self._pieces:
            gathered.extend(self._loaded(piece))
        gathered.extend(self.latest)
        return gathered

    def of_operation(self, operation: int) -> Iterator[tuple[int, int, int]]:
        """Yield the mark, offset and value of each entry of an operation."""
        stored = (
            self._loaded(piece).of_operation(operation)
            for piece in self._pieces
            if piece.first_operation <= operation <= piece.last_operation
        )
        return chain(chain.from_iterable(stored), self.latest.of_operation(operation))

    def _loaded(self, piece: _StoredEntries) -> EntryColumns:
        assert self._spool is not None
        return piece.loaded(self._spool)


def appended(column: "array[int]", number: int) -> "array[int]":
    """Return a column with a number added; it is a wider one as soon as the number needs that."""
    try:
        column.append(number)
    except OverflowError:
        return _extended(column, [number])
    return column


def _extended(column: "array[int]", numbers: list[int]) -> "array[int]":
    """Return a column with numbers added; it is a wider one as soon as a number needs that."""
    try:
        column.extend(array(column.typecode, numbers))
    except OverflowError:
        return array("q", chain(column, numbers))
    return column


def _joined(column: "array[int]", others: "array[int]") -> "array[int]":
    """Return a column with another one after it, as wide as the wider one."""
    if column.typecode == others.typecode:
        column.extend(others)
        return column
    return array("q", chain(column, others))
