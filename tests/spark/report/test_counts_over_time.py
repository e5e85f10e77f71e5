"""Counts of intervals over time, against numbers that were computed by hand."""

import numpy as np
import pytest

from kvorum.spark.report.rows import MISSING, Int64s
from kvorum.spark.report.time_window import (
    DAY_MS,
    STEPS_MAX,
    Intervals,
    TimeWindow,
    highest_counts,
    mean_counts,
)

EDGES = np.array([0, 10, 20, 30], dtype=np.int64)
WINDOW = TimeWindow(0, 30)


def intervals(*spans: tuple[int, int]) -> Intervals:
    begins, ends = zip(*spans, strict=True) if spans else ((), ())
    return Intervals.within(numbers(*begins), numbers(*ends), WINDOW)


def numbers(*values: int) -> Int64s:
    return np.array(values, dtype=np.int64)


def test_means_weigh_by_time() -> None:
    assert mean_counts(intervals((0, 5), (5, 25), (20, 25)), EDGES).tolist() == [1.0, 1.0, 1.0]
    assert mean_counts(intervals((2, 4), (3, 4)), EDGES).tolist() == pytest.approx([0.3, 0, 0])


@pytest.mark.parametrize(
    ("spans", "counts"),
    [
        ([(12, 13)], [0, 1, 0]),  # a short interval counts in its step
        ([(0, 12), (12, 30)], [1, 1, 1]),  # one that follows another does not count twice
        ([(0, 11), (5, 21), (6, 7)], [3, 2, 1]),  # nor is one new where it has begun before
        ([(0, 10)], [1, 0, 0]),  # an end at an edge belongs to the step before
        ([(10, 12)], [0, 1, 0]),  # a begin at an edge belongs to the step after
        ([], [0, 0, 0]),
    ],
)
def test_the_highest_count_is_that_of_any_moment_of_a_step(
    spans: list[tuple[int, int]], counts: list[int]
) -> None:
    assert highest_counts(intervals(*spans), EDGES).tolist() == counts


def test_without_intervals_the_means_are_0() -> None:
    assert mean_counts(intervals(), EDGES).tolist() == [0, 0, 0]


def test_counts_are_those_of_looking_at_each_millisecond() -> None:
    random = np.random.default_rng(7)
    begins = random.integers(0, 30, 50)
    spans = intervals(*((int(begin), int(begin + random.integers(0, 9))) for begin in begins))
    at_each = [int(((spans.begins <= ms) & (spans.ends > ms)).sum()) for ms in range(30)]
    steps = [at_each[begin : begin + 10] for begin in (0, 10, 20)]
    assert highest_counts(spans, EDGES).tolist() == [max(step) for step in steps]
    assert mean_counts(spans, EDGES).tolist() == pytest.approx([sum(step) / 10 for step in steps])


def test_intervals_are_cut_off_at_the_window_and_open_ones_end_with_it() -> None:
    found = Intervals.within(
        numbers(MISSING, 5, 40, 20, 8), numbers(3, MISSING, MISSING, 31, 6), WINDOW
    )
    assert found.begins.tolist() == [0, 5, 30, 20, 8]
    assert found.ends.tolist() == [3, 30, 30, 30, 8]
    assert found.is_open.tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("length_ms", [1, 999, 3_600_000, 7 * DAY_MS, 400 * DAY_MS, 9000 * DAY_MS])
def test_steps_are_few_and_cover_the_window(length_ms: int) -> None:
    window = TimeWindow(1_794_787_212_345, 1_794_787_212_345 + length_ms)
    edges = window.edges_ms()
    assert (edges[0], edges[-1]) == (window.begin_ms, window.end_ms)
    assert 1 <= len(edges) - 1 <= STEPS_MAX
    assert (np.diff(edges) > 0).all()
    assert (edges[1:-1] % window.step_ms == 0).all()


def test_a_week_has_steps_of_an_hour() -> None:
    assert TimeWindow(0, 7 * DAY_MS).step_ms == 3_600_000
