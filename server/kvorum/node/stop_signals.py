"""The signals that end a process: the first asks for a stop, the second ends its waits."""

import logging
import signal
from collections.abc import Callable

from kvorum.node.events.log_event import LogEvent

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SAME_ORDER_SECONDS = 0.2
"""A signal that follows another one sooner is of the same order: some programs that end processes
send theirs to the process and to its group."""
_log = logging.getLogger(__name__)


class StopSignals:
    """The stop signals that have come; `stop` acts on the first, `end_waits` on the second."""

    def __init__(self, *, stop: Callable[[], None], end_waits: Callable[[], None]) -> None:
        self.second: signal.Signals | None = None
        """The second, None before it came."""
        self._stop = stop
        self._end_waits = end_waits
        self._asked_at: float | None = None

    def take(self, number: signal.Signals, *, now: float) -> None:
        """Act on a signal that has come at `now`, in seconds of a monotonic clock."""
        if self._asked_at is None:
            _log.info(LogEvent("A signal asks for a stop", signal=number.name))
            self._asked_at = now
            self._stop()
        elif self.second is None and now - self._asked_at >= SAME_ORDER_SECONDS:
            _log.warning(
                LogEvent("A second signal: the stop waits for no other node", signal=number.name)
            )
            self.second = number
            self._end_waits()
