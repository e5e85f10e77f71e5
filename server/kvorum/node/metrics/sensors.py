"""Sensors that collect values at each event: windows of time, and the latest values."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

WINDOW_MS = 30_000
"""Kafka's metrics.sample.window.ms; two windows are kept, as with its metrics.num.samples."""
LATEST_COUNT = 1024
"""The number of values in a distribution; Kafka's reservoirs are of about the same size."""
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""The quantiles of Kafka's histograms."""


@dataclass(slots=True)
class _Window:
    start_ms: float
    count: int = 0
    total: float = 0.0
    highest: float = -math.inf


class WindowedSensor:
    """The values of the last two windows of time, as in Kafka's SampledStat."""

    __slots__ = ("_current", "_previous")

    def __init__(self, now_ms: float) -> None:
        self._current = _Window(now_ms)
        self._previous: _Window | None = None

    def record(self, value: float, now_ms: float) -> None:
        """Record a value."""
        window = self._current
        if now_ms - window.start_ms >= WINDOW_MS:
            self._previous, window = window, _Window(now_ms)
            self._current = window
        window.count += 1
        window.total += value
        window.highest = max(window.highest, value)

    def average(self, now_ms: float) -> float:
        """Return the mean of the values; NaN without any."""
        windows = self._windows(now_ms)
        count = sum(window.count for window in windows)
        return sum(window.total for window in windows) / count if count else math.nan

    def maximum(self, now_ms: float) -> float:
        """Return the highest of the values; NaN without any."""
        highest = max((window.highest for window in self._windows(now_ms)), default=-math.inf)
        return math.nan if highest == -math.inf else highest

    def rate_per_second(self, now_ms: float) -> float:
        """Return the sum of the values, divided by their time, which is at least one window."""
        windows = self._windows(now_ms)
        if not windows:
            return 0.0
        elapsed_ms = max(now_ms - windows[0].start_ms, 0.0)
        if elapsed_ms < WINDOW_MS:
            # Kafka counts missing windows as empty, so that a first value gives no high rate.
            elapsed_ms += WINDOW_MS
        return sum(window.total for window in windows) * 1000 / elapsed_ms

    def _windows(self, now_ms: float) -> list[_Window]:
        """Return the windows that still count, the older one first."""
        known = [window for window in (self._previous, self._current) if window is not None]
        return [window for window in known if now_ms - window.start_ms < 2 * WINDOW_MS]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The number of values, their sum, and quantiles of the latest ones."""

    count: int
    total: float
    quantiles: tuple[tuple[float, float], ...]


class LatestValues:
    """Counts values and keeps the latest ones for a distribution."""

    __slots__ = ("_latest", "count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._latest = array("d")

    def record(self, value: float) -> None:
        """Record a value."""
        if self.count < LATEST_COUNT:
            self._latest.append(value)
        else:
            self._latest[self.count % LATEST_COUNT] = value
        self.count += 1
        self.total += value

    def distribution(self) -> Distribution:
        """Return the distribution; without values it has no quantiles."""
        return Distribution(self.count, self.total, _quantiles(sorted(self._latest)))


class LatestRows:
    """Counts rows of values and keeps the latest ones, for a distribution of each column.

    A row costs one append; columns are made of many rows at a time.
    """

    __slots__ = ("_columns", "_rows", "count")

    def __init__(self, width: int) -> None:
        self.count = 0
        self._rows: list[tuple[float, ...]] = []
        self._columns = tuple(_Column() for _ in range(width))

    def record(self, row: tuple[float, ...]) -> None:
        """Record a value of each column."""
        self._rows.append(row)
        if len(self._rows) >= LATEST_COUNT:
            self._fold()

    def distributions(self) -> tuple[Distribution, ...]:
        """Return the distribution of each column."""
        self._fold()
        return tuple(column.distribution(self.count) for column in self._columns)

    def _fold(self) -> None:
        rows, self._rows = self._rows, []
        self.count += len(rows)
        for column, values in zip(self._columns, zip(*rows, strict=True), strict=False):
            column.extend(values)


class _Column:
    __slots__ = ("_latest", "_total")

    def __init__(self) -> None:
        self._latest = array("d")
        self._total = 0.0

    def extend(self, values: Sequence[float]) -> None:
        self._total += sum(values)
        self._latest.extend(values)
        del self._latest[:-LATEST_COUNT]

    def distribution(self, count: int) -> Distribution:
        return Distribution(count, self._total, _quantiles(sorted(self._latest)))


def _quantiles(values: list[float]) -> tuple[tuple[float, float], ...]:
    return tuple((share, _quantile(values, share)) for share in QUANTILES if values)


def _quantile(values: list[float], share: float) -> float:
    """Return a quantile of sorted values, interpolated between two of them."""
    position = share * (len(values) + 1)
    below = min(max(int(position), 1), len(values))
    if below >= len(values) or position < 1:
        return values[below - 1]
    lower, upper = values[below - 1], values[below]
    return lower + (position - below) * (upper - lower)
