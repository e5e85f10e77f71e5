"""The reader of a history: lines of JSON, two for each operation."""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from kvorum.client_histories.history import FAIL, INFO, OK, POLL, SEND, TXN, History
from kvorum.client_histories.history_error import HistoryError
from kvorum.client_histories.key_entries import (
    FORGOTTEN,
    NO_OFFSET,
    SENT,
    Entry,
    KeyEntries,
    appended,
)
from kvorum.client_histories.line_problems import INTEGER_MAX, INTEGER_MIN, problem_of
from kvorum.client_histories.spool import Spool

OUTCOMES: Final = {"ok": OK, "fail": FAIL, "info": INFO}
KINDS: Final = {"send": SEND, "poll": POLL, "txn": TXN}
ENTRIES_IN_MEMORY_MAX: Final = 1 << 20
"""The number of entries of all keys from which on they go to the spool, if there is one."""
_MALFORMED: Final = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""The errors of code that takes the form of a line for granted, where the line has another one."""
_UNKNOWN_PROBLEM: Final = "it is not a line of a history"


def read_history(lines: Iterable[bytes], spool: Spool | None = None) -> History:
    """Read the lines of a history, each with its end; the last one may be torn.

    With a spool the history takes little memory; it is of use as long as the spool is. Raises
    HistoryError for a line that does not belong into a history.
    """
    reader = _Reader(spool)
    number = 0
    for number, line in enumerate(lines, start=1):
        try:
            found = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n"):
                reader.history.torn_line = number
                break
            if not line.strip():
                continue
            raise HistoryError(number, f"it is not JSON: {error}") from None
        try:
            reader.take(number, found)
        except _MALFORMED:
            raise HistoryError(number, problem_of(found) or _UNKNOWN_PROBLEM) from None
    reader.end()
    if not len(reader.history):
        raise HistoryError(number, "the history has no operation of sends or polls")
    return reader.history


class _Times(NamedTuple):
    """The times of the invocation and of the completion of an operation."""

    invoked: int
    completed: int


class _Invocation(NamedTuple):
    """The first line of an operation."""

    line: int
    time: int
    function: str
    found: dict[str, Any]

    def checked_value(self) -> list[Any]:
        """Return the value of the line, which the reader has not looked at before."""
        problem = problem_of(self.found)
        if problem is not None:
            raise HistoryError(self.line, problem)
        value: list[Any] = self.found.get("v", [])
        return value


class _Reader:
    """The history as far as it has been read, and the operations that are under way."""

    def __init__(self, spool: Spool | None) -> None:
        self.history = History(spool)
        self._entries_in_memory = 0
        self._open: dict[int, _Invocation] = {}
        self._keys: dict[str | int, KeyEntries] = {}
        self._polled: defaultdict[int, set[str]] = defaultdict(set)
        """The keys in which each process has a position."""
        self._subscribed: set[int] = set()
        self._last_index = -1

    def take(self, line: int, found: Any) -> None:
        """Take the object of one line; its malformations raise any error of `_MALFORMED`."""
        process = found["p"]
        index = found.get("i", line)
        if index <= self._last_index:
            raise HistoryError(line, f"i is {index}, after {self._last_index}: it has to grow")
        self._last_index = index
        if found["type"] == "invoke":
            before = self._open.get(process)
            if before is not None:
                raise HistoryError(
                    line,
                    f"process {process} invokes an operation, and its last one, of line "
                    f"{before.line}, has not completed",
                )
            time = found["t"]
            if type(process) is not int or type(time) is not int:
                raise TypeError
            if not INTEGER_MIN <= min(process, time) <= max(process, time) <= INTEGER_MAX:
                raise OverflowError
            self._open[process] = _Invocation(line, time, found["f"], found)
        else:
            self._complete(line, found, process)

    def end(self) -> None:
        """Count what is still under way as of unknown outcome."""
        for process, invocation in self._open.items():
            value = invocation.checked_value()
            kind = KINDS.get(invocation.function)
            if kind is not None:
                self._add_operation(process, INFO, invocation, 0)
                self._add_steps(INFO, kind, value, _Times(invocation.time, invocation.time))

    def _complete(self, line: int, found: Any, process: int) -> None:
        outcome = OUTCOMES[found["type"]]
        function = found["f"]
        invocation = self._open.pop(process, None)
        if invocation is None:
            problem = problem_of(found) or f"process {process} completes what it has not invoked"
            raise HistoryError(line, problem)
        if invocation.function != function:
            raise HistoryError(
                line,
                f"process {process} completes {function!r}, and invoked "
                f"{invocation.function!r} in line {invocation.line}",
            )
        kind = KINDS.get(function)
        if kind is None:
            keys = found["v"] if "v" in found else invocation.checked_value()
            self._move_consumer(process, function, outcome, keys)
            return
        is_known = "v" in found or outcome == OK
        steps = found["v"] if is_known else invocation.checked_value()
        self._add_operation(process, outcome, invocation, line)
        self._add_steps(outcome, kind, steps, _Times(invocation.time, found["t"]))
        for key in found.get("rebalanced", ()):
            self._entries(key).rebalanced.add(len(self.history) - 1)

    def _add_operation(
        self, process: int, outcome: int, invocation: _Invocation, line: int
    ) -> None:
        history = self.history
        history.processes = appended(history.processes, process)
        history.outcomes.append(outcome)
        history.kinds.append(KINDS[invocation.function])
        history.subscribed.append(process in self._subscribed)
        history.invoked_lines.append(invocation.line)
        history.completed_lines.append(line)

    def _add_steps(self, outcome: int, kind: int, steps: list[Any], times: _Times) -> None:
        """Add what the latest operation sent and polled to the entries of the keys."""
        operation = len(self.history) - 1
        for step in steps:
            if step[0] == "send" and kind != POLL:
                is_unknown_txn = kind == TXN and outcome == INFO
                self._add_send(operation, step, times.completed, is_unknown_txn=is_unknown_txn)
            elif step[0] == "poll" and kind != SEND:
                if len(step) > 1:
                    self._add_poll(operation, step, times.invoked)
            else:
                raise ValueError
        if self._entries_in_memory >= ENTRIES_IN_MEMORY_MAX:
            self._store_entries()

    def _store_entries(self) -> None:
        for entries in self.history.keys:
            entries.store()
        self._entries_in_memory = 0

    def _add_send(
        self, operation: int, step: list[Any], time: int, *, is_unknown_txn: bool
    ) -> None:
        _, key, what = step
        offset, value = (None, what) if type(what) is int else what
        if offset is None:
            offset = NO_OFFSET
        elif offset < 0:
            raise ValueError
        entries = self._entries(key)
        entries.latest.append(Entry(operation, SENT, offset, value, time))
        self._entries_in_memory += 1
        if is_unknown_txn:
            entries.unknown_sends[value] = operation

    def _add_poll(self, operation: int, step: list[Any], time: int) -> None:
        _, polled = step
        positions = self._polled[self.history.processes[operation]]
        for key, records in polled.items():
            entries = self._entries(key)
            positions.add(entries.name)
            entries.latest.append_polled(operation, records, time)
            self._entries_in_memory += len(records)

    def _entries(self, key: str | int) -> KeyEntries:
        """Return the entries of a key; a number and its text are the same key."""
        entries = self._keys.get(key)
        if entries is None:
            if type(key) not in {int, str}:
                raise TypeError
            name = str(key)
            entries = self._keys.get(name)
            if entries is None:
                entries = self._keys[name] = KeyEntries(name, self.history.spool)
                self.history.keys.append(entries)
            self._keys[key] = entries
        return entries

    def _move_consumer(self, process: int, function: str, outcome: int, keys: list[Any]) -> None:
        """Forget positions that an assignment, a subscription or a crash takes from a process."""
        if function not in {"assign", "subscribe", "crash"}:
            raise ValueError
        if function == "crash":
            keys = []
        elif outcome == FAIL:
            return
        kept: set[str] = set()
        # After an attempt of unknown outcome the position in any key may be another one; so it may
        # after a subscription, which let the group choose.
        if outcome == OK and not (function == "assign" and process in self._subscribed):
            kept = {self._entries(key).name for key in keys}
        if function == "subscribe":
            self._subscribed.add(process)
        elif function == "crash" or outcome == OK:
            self._subscribed.discard(process)
        positions = self._polled[process]
        for name in positions - kept:
            forgotten = Entry(len(self.history), FORGOTTEN, NO_OFFSET, process, 0)
            self._keys[name].latest.append(forgotten)
        positions &= kept
