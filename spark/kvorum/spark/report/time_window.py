"""The window of time that a report covers, and intervals and their numbers in its equal steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvorum.spark.report.rows import MISSING, Bools, Int64s

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

STEPS_MAX: Final = 240
"""More steps than a screen shows apart would only make pages larger."""

_STEP_LENGTHS_MS: Final = (
    *(each * SECOND_MS for each in (1, 2, 5, 10, 15, 30)),
    *(each * MINUTE_MS for each in (1, 2, 5, 10, 15, 30)),
    *(each * HOUR_MS for each in (1, 2, 3, 6, 12)),
    *(each * DAY_MS for each in (1, 2, 7, 14, 28)),
)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The time from `begin_ms` to `end_ms`, in milliseconds since 1970; the end is later."""

    begin_ms: int
    end_ms: int

    def __post_init__(self) -> None:
        assert self.begin_ms < self.end_ms

    @property
    def length_ms(self) -> int:
        """The length in milliseconds."""
        return self.end_ms - self.begin_ms

    @property
    def step_ms(self) -> int:
        """The shortest length of steps, out of round ones, that gives at most `STEPS_MAX` steps."""
        longest = _STEP_LENGTHS_MS[-1]
        return next(
            (each for each in _STEP_LENGTHS_MS if self.length_ms <= each * (STEPS_MAX - 1)),
            longest * -(-self.length_ms // (longest * (STEPS_MAX - 1))),
        )

    def edges_ms(self) -> Int64s:
        """Return where steps begin, and the end of the last one.

        Steps begin at multiples of their length, in UTC; the first and the last one are cut off at
        the window's ends.
        """
        step = self.step_ms
        inner = np.arange((self.begin_ms // step + 1) * step, self.end_ms, step, dtype=np.int64)
        edges: Int64s = np.concatenate(([self.begin_ms], inner, [self.end_ms]))
        return edges

    def overlaps(self, begins: Int64s, ends: Int64s) -> Bools:
        """Return which intervals have a time in the window; one that is open has no end."""
        found: Bools = (begins <= self.end_ms) & ((ends == MISSING) | (ends >= self.begin_ms))
        return found

    def share(self, time_ms: int) -> float:
        """Return where a time is in the window: 0 at its begin, 1 at its end, never outside."""
        inside = min(max(time_ms, self.begin_ms), self.end_ms)
        return (inside - self.begin_ms) / self.length_ms


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of time, in milliseconds; those that are still open end where the window ends."""

    begins: Int64s
    ends: Int64s
    is_open: Bools

    @classmethod
    def within(cls, begins: Int64s, ends: Int64s, window: TimeWindow) -> Intervals:
        """Return intervals cut off at the window's ends.

        A begin that is `MISSING` is that of the window, an end that is `MISSING` is open. An
        interval that lies outside, or ends before it begins, has a length of 0.
        """
        whole = cls.until_end(begins, ends, window)
        cut = np.clip(whole.begins, window.begin_ms, window.end_ms)
        cut_ends = np.clip(whole.ends, window.begin_ms, window.end_ms)
        return cls(cut, np.maximum(cut, cut_ends), whole.is_open)

    @classmethod
    def until_end(cls, begins: Int64s, ends: Int64s, window: TimeWindow) -> Intervals:
        """Return intervals cut off at the window's end alone; what is missing is as in `within`."""
        known_begins = np.where(begins == MISSING, window.begin_ms, begins)
        known_ends = np.where(ends == MISSING, window.end_ms, np.minimum(ends, window.end_ms))
        is_open = ((ends == MISSING) | (ends > window.end_ms)) & (known_begins <= window.end_ms)
        return cls(known_begins, np.maximum(known_begins, known_ends), is_open)

    @property
    def lengths_ms(self) -> Int64s:
        """The duration of each, within the window."""
        lengths: Int64s = self.ends - self.begins
        return lengths

    def at(self, indices: Int64s) -> Intervals:
        """Return the intervals at `indices`, in their order."""
        return Intervals(self.begins[indices], self.ends[indices], self.is_open[indices])


def mean_counts(intervals: Intervals, edges_ms: Int64s) -> NDArray[np.float64]:
    """Return for each step the mean over its time of the number of intervals under way."""
    covered = np.diff(
        _time_after(intervals.begins, edges_ms) - _time_after(intervals.ends, edges_ms)
    )
    means: NDArray[np.float64] = covered / np.diff(edges_ms)
    return means


def highest_counts(intervals: Intervals, edges_ms: Int64s) -> Int64s:
    """Return for each step the highest number of intervals that were under way at one time.

    An end and a begin at the same time are one change, so a count does not rise where one interval
    follows another.
    """
    times = np.concatenate((intervals.begins, intervals.ends))
    signs = np.ones(len(times), dtype=np.int64)
    signs[len(intervals.begins) :] = -1
    order = np.argsort(times, kind="stable")
    times, running = times[order], np.cumsum(signs[order])
    is_last = np.append(times[1:] != times[:-1], True)[: len(times)]
    change_times = times[is_last]
    # Index 0 is the count before the first change.
    counts = np.concatenate(([0], running[is_last], [0]))
    first = np.searchsorted(change_times, edges_ms[:-1], side="right")
    last = np.searchsorted(change_times, edges_ms[1:], side="left")
    bounds = np.column_stack((first, last + 1)).ravel()
    highest: Int64s = np.maximum.reduceat(counts, bounds)[::2]
    return highest


def _time_after(times_ms: Int64s, edges_ms: Int64s) -> Int64s:
    """Return for each edge the sum of the times that have passed since each of `times_ms`.

    Times are counted from the first edge, so that the sums of a million years of intervals fit.
    """
    since: Int64s = np.sort(times_ms - edges_ms[0])
    edges: Int64s = edges_ms - edges_ms[0]
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(since)))
    passed: Int64s = np.searchsorted(since, edges, side="right")
    after: Int64s = passed * edges - sums[passed]
    return after
