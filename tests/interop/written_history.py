"""A history of what clients did and saw, written as `kvorum check-history` reads it."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

OK: Final = "ok"
FAIL: Final = "fail"
"""The outcome of what was certainly not done."""
INFO: Final = "info"
"""The outcome of what may have been done."""
Sends = Sequence[tuple[int, int]]
"""A partition and a value each."""


class WrittenHistory:
    """The lines of all clients, in the order in which things happened; use as a context."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._numbers = count()
        self._processes = count(1)

    def __enter__(self) -> Self:
        self._lines = self._file.open("w", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()

    def new_process(self) -> int:
        """Return the number of a client that begins."""
        with self._lock:
            return next(self._processes)

    def assign(self, process: int, partitions: Sequence[int]) -> None:
        for outcome in ("invoke", OK):
            self.write(process, outcome, "assign", list(partitions))

    def poll(self, process: int) -> "Operation":
        """Begin a poll, whose records the end of the operation has."""
        return Operation(self, process, "poll", [["poll"]])

    def transaction(self, process: int, sends: Sends) -> "Operation":
        """Begin a transaction that sends values."""
        return Operation(self, process, "txn", [["send", key, value] for key, value in sends])

    def write(self, process: int, outcome: str, kind: str, steps: Any) -> None:
        """Write the line of an event; `outcome` is the type of the line."""
        with self._lock:
            line = {
                "i": next(self._numbers),
                "t": time.monotonic_ns(),
                "p": process,
                "type": outcome,
                "f": kind,
                "v": steps,
            }
            self._lines.write(json.dumps(line, separators=(",", ":")) + "\n")


class Operation:
    """An operation from its beginning; as a context its outcome is unknown unless it is said."""

    def __init__(self, history: WrittenHistory, process: int, kind: str, steps: list[Any]) -> None:
        self._history = history
        self._process = process
        self._kind = kind
        self._steps = steps
        self._is_over = False
        history.write(process, "invoke", kind, steps)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_over:
            self._end(INFO, self._steps)

    def sent(self, offsets: Mapping[tuple[int, int], int]) -> None:
        """End it: all sends are done, at these offsets."""
        steps = [
            [step, key, [offsets.get((key, value)), value]] for step, key, value in self._steps
        ]
        self._end(OK, steps)

    def polled(self, records: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        """End it: these offsets and values were read, by partition."""
        found = {str(key): [list(one) for one in pairs] for key, pairs in records.items()}
        self._end(OK, [["poll", found]])

    def failed(self) -> None:
        """End it: it was certainly not done."""
        self._end(FAIL, self._steps)

    def _end(self, outcome: str, steps: list[Any]) -> None:
        self._is_over = True
        self._history.write(self._process, outcome, self._kind, steps)
