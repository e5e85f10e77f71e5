"""Measures of how a key was consumed: values that came again, and values that came late."""

from typing import Final

from kvorum.client_histories.anomalies import Anomaly, Legality
from kvorum.client_histories.findings import Facts, Findings, Strip
from kvorum.client_histories.history import OK, TXN, History
from kvorum.client_histories.key_entries import POLLED, SENT
from kvorum.client_histories.key_log import KeyLog

_NANOSECONDS: Final = 1_000_000_000
_NEVER: Final = 1 << 63
"""A time after all times."""


class Consumption:
    """The values that subscribed processes polled again, and the greatest lag of all polls."""

    def __init__(self, history: History, findings: Findings) -> None:
        self._history = history
        self._findings = findings
        self._lag = 0
        self._lag_facts: Facts | None = None

    def find(self, log: KeyLog) -> None:
        """Add what was consumed again to the findings, and measure the lag of polls."""
        self._find_repeated(log)
        self._measure_lag(log)

    def end(self) -> None:
        """Add the greatest lag to the findings, if there was any."""
        facts = self._lag_facts
        if facts is not None:
            self._findings.add(Anomaly.REALTIME_LAG, Legality.REPORTED, lambda: facts)

    def _find_repeated(self, log: KeyLog) -> None:
        history = self._history
        seen: dict[tuple[int, int], int] = {}
        for operation, mark, offset, value in log.entries:
            if mark != POLLED or not history.subscribed[operation]:
                continue
            if history.outcomes[operation] != OK or history.kinds[operation] != TXN:
                continue
            first = seen.setdefault((history.processes[operation], value), operation)
            if first != operation:
                self._add_repeated(log, first, operation, offset)

    def _add_repeated(self, log: KeyLog, first: int, second: int, offset: int) -> None:
        self._findings.add(
            Anomaly.CONSUME_COUNTS,
            Legality.REPORTED,
            lambda: Facts(
                f"process {self._history.processes[second]} polled offset {offset} again",
                (first, second),
                (Strip(log.name, log.strip(offset), (offset,)),),
            ),
        )

    def _measure_lag(self, log: KeyLog) -> None:
        stale_from = self._times_of_newer_values(log)
        last: tuple[int, int, int] | None = None
        """The latest operation that polled the key, its offset there, and its invocation."""
        for (operation, mark, offset, _), time in zip(log.entries, log.entries.times, strict=True):
            if mark != POLLED:
                continue
            if last is not None and last[0] != operation:
                self._measure_poll(log, stale_from, *last)
            last = (operation, offset, time)
        if last is not None:
            self._measure_poll(log, stale_from, *last)

    def _measure_poll(
        self, log: KeyLog, stale_from: list[int], operation: int, offset: int, invoked_time: int
    ) -> None:
        history = self._history
        lag = invoked_time - stale_from[log.indexes[offset] + 1]
        if lag <= self._lag or history.outcomes[operation] != OK:
            return
        self._lag = lag
        self._lag_facts = Facts(
            f"process {history.processes[operation]} polled to offset {offset} and no further, "
            f"{lag / _NANOSECONDS:.3f} s after a newer value was acknowledged",
            (operation,),
            (Strip(log.name, log.strip(offset), (offset,)),),
        )

    def _times_of_newer_values(self, log: KeyLog) -> list[int]:
        """Return for each index the time from which it, or a later one, was acknowledged."""
        history = self._history
        times = [_NEVER] * (len(log.offsets) + 1)
        for (writer, mark, _, value), time in zip(log.entries, log.entries.times, strict=True):
            if mark != SENT or history.outcomes[writer] != OK:
                continue
            index = log.index_of(value)
            if index is not None:
                times[index] = time
        for index in range(len(times) - 2, -1, -1):
            times[index] = min(times[index], times[index + 1])
        return times
