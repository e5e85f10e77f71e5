"""The operations of a history, as columns of integers.

Operations have ids in the order of their completions. The ones that never completed come last.
"""

from array import array
from dataclasses import dataclass
from typing import Final

from kvorum.client_histories.key_entries import NO_OFFSET, POLLED, SENT, KeyEntries
from kvorum.client_histories.spool import Spool

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
    """The columns of all operations, and the entries of each key.

    What is only looked at one key at a time, or from its beginning to its end, goes to `spool`, if
    there is one.
    """

    def __init__(self, spool: Spool | None = None) -> None:
        self.spool = spool
        self.processes = array("i")
        self.outcomes = bytearray()
        self.kinds = bytearray()
        self.subscribed = bytearray()
        """1 for an operation whose process is subscribed, and not assigned by hand."""
        self.invoked_lines = array("I")
        self.completed_lines = array("I")
        """The lines of the completions, 0 for an operation that has none."""
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
