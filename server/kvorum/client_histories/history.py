"""The operations of a history, as columns of integers: some for all, and some for each key.

Operations have ids in the order of their completions. The ones that never completed come last.
Columns take a fraction of the memory of objects, so that a history may have millions of operations.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final

OK: Final = 1
"""An outcome: the operation was done."""
FAIL: Final = 2
"""An outcome: the operation was certainly not done."""
INFO: Final = 3
"""An outcome: it is not known whether the operation was done."""
OUTCOME_NAMES: Final = {OK: "ok", FAIL: "fail", INFO: "info"}
SEND: Final = 0
"""A kind: an operation of sends outside of transactions."""
POLL: Final = 1
"""A kind: an operation of polls."""
TXN: Final = 2
"""A kind: a transaction, of sends and polls."""
KIND_NAMES: Final = {SEND: "send", POLL: "poll", TXN: "txn"}
SENT: Final = 0
"""A mark: an entry is a value that its operation sent."""
POLLED: Final = 1
"""A mark: an entry is a value that its operation polled."""
FORGOTTEN: Final = 2
"""A mark: a process lost its position in the key; the value is its number."""
NO_OFFSET: Final = -1
"""The offset of a send whose producer did not get one."""


class KeyEntries:
    """The values of one key in the order of operations: who sent and polled what, and where."""

    __slots__ = (
        "marks",
        "name",
        "offsets",
        "operations",
        "rebalanced",
        "unknown_sends",
        "values",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.operations = array("I")
        self.marks = array("B")
        self.offsets = array("i")
        self.values = array("i")
        self.rebalanced: set[int] = set()
        """The operations in which a rebalance gave or took the key."""
        self.unknown_sends: dict[int, int] = {}
        """The values that transactions of unknown outcome sent, and these transactions."""

    def append(self, operation: int, mark: int, offset: int, value: int) -> None:
        """Add an entry of the latest operation."""
        self.operations.append(operation)
        self.marks.append(mark)
        self.offsets = _appended(self.offsets, offset)
        self.values = _appended(self.values, value)

    def append_polled(self, operation: int, records: list[tuple[int, int]]) -> None:
        """Add the pairs of offset and value that the latest operation polled."""
        offsets = [offset for offset, _ in records]
        if min(offsets, default=0) < 0:
            raise ValueError(offsets)
        self.offsets = _extended(self.offsets, offsets)
        self.values = _extended(self.values, [value for _, value in records])
        self.operations.extend(repeat(operation, len(records)))
        self.marks.extend(repeat(POLLED, len(records)))

    def __iter__(self) -> Iterator[tuple[int, int, int, int]]:
        return zip(self.operations, self.marks, self.offsets, self.values, strict=True)

    def of_operation(self, operation: int) -> Iterator[tuple[int, int, int]]:
        """Yield the mark, offset and value of each entry of an operation."""
        place = bisect_left(self.operations, operation)
        while place < len(self.operations) and self.operations[place] == operation:
            if self.marks[place] != FORGOTTEN:
                yield self.marks[place], self.offsets[place], self.values[place]
            place += 1


def _appended(column: "array[int]", number: int) -> "array[int]":
    """Return a column with a number added, as `_extended` does with several."""
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


@dataclass(frozen=True, slots=True)
class Record:
    """A value of a key as an operation sent or polled it; without an offset if that is unknown."""

    key: str
    offset: int | None
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation with all that is known of it, for people and programs to look at."""

    invoked_line: int
    completed_line: int | None
    process: int
    outcome: str
    kind: str
    sent: tuple[Record, ...]
    polled: tuple[Record, ...]


class History:
    """The columns of all operations, and those of each key."""

    def __init__(self) -> None:
        self.processes = array("q")
        self.outcomes = bytearray()
        self.kinds = bytearray()
        self.subscribed = bytearray()
        """1 for an operation whose process is subscribed, and not assigned by hand."""
        self.invoked_lines = array("I")
        self.completed_lines = array("I")
        """The lines of the completions, 0 for an operation that has none."""
        self.invoked_times = array("q")
        self.completed_times = array("q")
        self.keys: list[KeyEntries] = []
        self.torn_line: int | None = None
        """The number of the last line, where its end is missing; it was left out."""

    def __len__(self) -> int:
        return len(self.outcomes)

    def operation(self, number: int) -> Operation:
        """Return an operation by its id, with everything that the keys have of it."""
        entries = [
            (mark, Record(key.name, None if offset == NO_OFFSET else offset, value))
            for key in self.keys
            for mark, offset, value in key.of_operation(number)
        ]
        return Operation(
            invoked_line=self.invoked_lines[number],
            completed_line=self.completed_lines[number] or None,
            process=self.processes[number],
            outcome=OUTCOME_NAMES[self.outcomes[number]],
            kind=KIND_NAMES[self.kinds[number]],
            sent=tuple(record for mark, record in entries if mark == SENT),
            polled=tuple(record for mark, record in entries if mark == POLLED),
        )
