"""The dependencies of operations: which one wrote after another, and which one read from it."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from kvorum.client_histories.history import FAIL, INFO, History
from kvorum.client_histories.key_entries import POLLED
from kvorum.client_histories.key_log import KeyLog
from kvorum.client_histories.operation_pairs import OperationPairs

WW: Final = 1
"""A dependency: the second operation wrote the value that follows one of the first."""
WR: Final = 2
"""A dependency: the second operation polled a value that the first one wrote."""


class Span(NamedTuple):
    """A part of a history, from one line to another."""

    first: int
    last: int


class Dependencies:
    """The dependencies of a history by the ids of operations, as columns of integers.

    The place of an operation is the line in which it took effect at the latest: its completion, or
    the invocation of one of unknown outcome. Most dependencies go forward, from one place to a
    later one, and the orders of processes and of time always do. So a circle needs dependencies
    that go back, and lies within the span of lines that these cover together.
    """

    def __init__(self, history: History, committed: bytearray) -> None:
        self._history = history
        self._committed = committed
        self._pairs: Final = {
            WW: OperationPairs(history.spool),
            WR: OperationPairs(history.spool),
        }
        self._unknown = sorted(
            (history.invoked_lines[operation], operation)
            for operation, outcome in enumerate(history.outcomes)
            if outcome == INFO
        )
        self._end = len(history)
        """The end of the operations that have completed."""
        while self._end and not history.completed_lines[self._end - 1]:
            self._end -= 1

    def add(self, log: KeyLog) -> None:
        """Add the dependencies that the log of a key shows."""
        committed = self._committed
        outcomes = self._history.outcomes
        pairs = self._pairs[WR]
        last: tuple[int, int] | None = None
        for operation, mark, _, value in log.entries:
            if mark != POLLED or outcomes[operation] == FAIL:
                continue
            writer = log.writers.get(value)
            if writer is None or writer == operation or not committed[writer]:
                continue
            # The values of a transaction are next to one another as a rule.
            if committed[operation] and last != (writer, operation):
                last = (writer, operation)
                pairs.add(writer, operation)
        for before, after in log.neighbours():
            if committed[before] and committed[after]:
                self._pairs[WW].add(before, after)

    def place(self, operation: int) -> int:
        """Return the line in which an operation took effect at the latest."""
        if self._history.outcomes[operation] == INFO:
            return self._history.invoked_lines[operation]
        return self._history.completed_lines[operation]

    def spans(self) -> list[Span]:
        """Return the parts of the history in which there may be circles, in their order."""
        places = self._places()
        reach = array("I", [0]) * (max(places, default=0) + 1)
        """The end of the longest dependency back to each line."""
        for kind in (WW, WR):
            for writer, dependent in self._pairs[kind]:
                first = places[dependent]
                reach[first] = max(reach[first], places[writer])
        spans: list[Span] = []
        start = end = 0
        for line, last in enumerate(reach):
            if last <= line:
                continue
            if line > end:
                if end:
                    spans.append(Span(start, end))
                start = line
            end = max(end, last)
        return [*spans, Span(start, end)] if end else spans

    def operations(self, span: Span) -> list[int]:
        """Return the operations that have their places within a span, without failed ones."""
        history = self._history
        first = bisect_left(history.completed_lines, span.first, hi=self._end)
        last = bisect_right(history.completed_lines, span.last, hi=self._end)
        known = (one for one in range(first, last) if history.outcomes[one] not in {FAIL, INFO})
        start = bisect_left(self._unknown, (span.first, 0))
        end = bisect_left(self._unknown, (span.last + 1, 0))
        unknown = (operation for _, operation in self._unknown[start:end])
        return sorted([*known, *unknown], key=self.place)

    def within(self, groups: "array[int]") -> Iterator[tuple[int, int, int]]:
        """Yield kind, writer and dependent where both are of one group, whose number is not 0."""
        for kind in (WW, WR):
            for writer, dependent in self._pairs[kind]:
                if groups[writer] and groups[writer] == groups[dependent]:
                    yield kind, writer, dependent

    def _places(self) -> "array[int]":
        places = array("I", self._history.completed_lines)
        for line, operation in self._unknown:
            places[operation] = line
        return places
