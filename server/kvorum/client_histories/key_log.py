"""The log of one key as the clients of a history saw it: which values are at which offsets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kvorum.client_histories.history import OK, History
from kvorum.client_histories.history_error import HistoryError
from kvorum.client_histories.key_entries import FORGOTTEN, NO_OFFSET, SENT, KeyEntries

STRIP_REACH: Final = 3
"""The number of offsets that a strip shows on either side."""


@dataclass(frozen=True, slots=True)
class Place:
    """An offset of a key and the values that were seen there."""

    offset: int
    values: tuple[int, ...]


class KeyLog:
    """The log of a key: what committed operations sent, and what any operation polled.

    Offsets where no value was seen are those of markers and aborted records: they do not count. The
    index of a value is its position among the others. Raises HistoryError for a value that was
    sent twice.
    """

    def __init__(self, history: History, entries: KeyEntries, committed: bytearray) -> None:
        self.name: Final = entries.name
        self.entries: Final = entries.all()
        self.rebalanced: Final = entries.rebalanced
        """The operations in which a rebalance gave or took the key."""
        self.writers: Final[dict[int, int]] = {}
        """The operation that sent each value, whatever became of it."""
        self.first_offsets: Final[dict[int, int]] = {}
        self.last_offsets: Final[dict[int, int]] = {}
        """The greatest offset of each value that has several."""
        self.values: Final[dict[int, int]] = {}
        """The value that was seen first at each offset."""
        self.other_values: Final[dict[int, set[int]]] = {}
        """Further values at offsets that have several."""
        self.polled: Final[set[int]] = set()
        """The values that operations of the outcome ok polled."""
        for operation, mark, offset, value in self.entries:
            if mark == SENT:
                if value in self.writers:
                    raise _sent_twice(history, entries.name, value, self.writers[value], operation)
                self.writers[value] = operation
                if committed[operation] and offset != NO_OFFSET:
                    self._add(offset, value)
            elif mark != FORGOTTEN:
                self._add(offset, value)
                if history.outcomes[operation] == OK:
                    self.polled.add(value)
        self.offsets: Final = sorted(self.values)
        self.indexes: Final = dict(zip(self.offsets, range(len(self.offsets)), strict=True))
        """The index of each offset that has a value."""

    def _add(self, offset: int, value: int) -> None:
        seen = self.values.setdefault(offset, value)
        if seen != value:
            self.other_values.setdefault(offset, set()).add(value)
        first = self.first_offsets.setdefault(value, offset)
        if first != offset:
            self.first_offsets[value] = min(first, offset)
            self.last_offsets[value] = max(first, offset, self.last_offsets.get(value, offset))

    def index_of(self, value: int) -> int | None:
        """Return the first index of a value, or None if its offset is unknown."""
        offset = self.first_offsets.get(value)
        return None if offset is None else self.indexes[offset]

    def index_of_send(self, offset: int, value: int) -> int | None:
        """Return the index of a value that was sent, or None if it is not known."""
        index = self.indexes.get(offset)
        return self.index_of(value) if index is None else index

    def values_at(self, offset: int) -> tuple[int, ...]:
        """Return all values that were seen at an offset."""
        return (self.values[offset], *sorted(self.other_values.get(offset, ())))

    @cached_property
    def repeated(self) -> dict[int, list[int]]:
        """The offsets of each value that has several."""
        found: dict[int, list[int]] = {value: [] for value in self.last_offsets}
        for offset in self.offsets:
            for value in self.values_at(offset):
                if value in found:
                    found[value].append(offset)
        return found

    def strip(self, *centers: int) -> tuple[Place, ...]:
        """Return the log around some offsets."""
        around: set[int] = set()
        for index in (self.indexes[center] for center in centers if center in self.indexes):
            around.update(range(index - STRIP_REACH, index + STRIP_REACH + 1))
        around &= set(range(len(self.offsets)))
        offsets = (self.offsets[index] for index in sorted(around))
        return tuple(Place(offset, self.values_at(offset)) for offset in offsets)

    def neighbours(self) -> Iterator[tuple[int, int]]:
        """Yield the writers of each two values that follow one another, where both are known."""
        before: int | None = None
        for offset in self.offsets:
            value = self.values[offset]
            writer = self.writers.get(value)
            if offset in self.other_values:
                writer = None
            elif value in self.last_offsets and offset != self.first_offsets[value]:
                # The log goes on as if a repeated value was not there.
                continue
            if before is not None and writer is not None and before != writer:
                yield before, writer
            before = writer


def _sent_twice(history: History, key: str, value: int, first: int, second: int) -> HistoryError:
    lines = [history.completed_lines[one] or history.invoked_lines[one] for one in (first, second)]
    return HistoryError(
        lines[1],
        f"value {value} of key {key} was sent before, in line {lines[0]}: values are sent once",
    )
