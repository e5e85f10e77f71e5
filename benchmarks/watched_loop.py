"""A kvorum server that notes how late its event loop is.

`python -m benchmarks.watched_loop FILE [slow]` runs `kvorum server FILE`, on the disks of
`tests/support/troubled_disks.py` with `slow`. Every few milliseconds the loop is to do something.
When it was due and by how much it came late goes to `latenesses_file(FILE)`, a line for each, by a
thread, so that the loop does nothing else for it.
"""

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final
from unittest.mock import patch

from tests.support.troubled_disks import TroubledDisks

from kvorum.cli import main
from kvorum.node.raft import raft_node
from kvorum.node.raft.raft_node import StallWatch
from kvorum.node.runtime import Runtime

BEAT_S: Final = 0.005
WRITE_EVERY_S: Final = 0.2


def latenesses_file(properties: Path) -> Path:
    return properties.with_name("latenesses")


def watched_command(properties: Path, *, is_slow: bool) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.watched_loop", str(properties)]
    return [*command, "slow"] if is_slow else command


def read_latenesses_ms(properties: Path, began: float, ended: float) -> list[float]:
    """Return by how many ms beats came late that were due within two times of the same clock.

    A beat that a stall left no time for counts too: as late as it would have been.
    """
    time.sleep(2 * WRITE_EVERY_S)
    lines = latenesses_file(properties).read_text().splitlines()
    latenesses: list[float] = []
    for due, late in (map(float, line.split()) for line in lines):
        if began <= due <= ended:
            missed = int(late / BEAT_S)
            latenesses += [1000 * (late - number * BEAT_S) for number in range(missed + 1)]
    return latenesses


class _WatchedLoop(StallWatch):
    """A watch for stalls that notes in `noted` when the loop was to do something, and how late."""

    noted: ClassVar[deque[tuple[float, float]]] = deque()

    def __init__(self, runtime: Runtime, on_stall: Callable[[float], None]) -> None:
        super().__init__(runtime, on_stall)
        self._running = asyncio.get_running_loop()
        self._plan()

    def _plan(self) -> None:
        self._due_s = time.monotonic() + BEAT_S
        self._running.call_later(BEAT_S, self._note)

    def _note(self) -> None:
        self.noted.append((self._due_s, max(time.monotonic() - self._due_s, 0.0)))
        self._plan()


def _write_down(file: Path) -> None:
    noted = _WatchedLoop.noted
    with file.open("w", encoding="ascii") as out:
        while True:
            time.sleep(WRITE_EVERY_S)
            for _ in range(len(noted)):
                due, late = noted.popleft()
                out.write(f"{due:.6f} {late:.6f}\n")
            out.flush()


def _run(properties: Path, *, is_slow: bool) -> int:
    threading.Thread(target=_write_down, args=(latenesses_file(properties),), daemon=True).start()
    with patch.object(raft_node, "StallWatch", _WatchedLoop):
        if is_slow:
            return TroubledDisks([]).run(properties)
        return main(["server", str(properties)])


if __name__ == "__main__":
    sys.exit(_run(Path(sys.argv[1]), is_slow="slow" in sys.argv[2:]))
