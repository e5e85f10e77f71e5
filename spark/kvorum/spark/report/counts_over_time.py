"""The number of intervals under way, step by step: means and maxima."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kvorum.spark.report.rows import Int64s
from kvorum.spark.report.time_window import Intervals


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
