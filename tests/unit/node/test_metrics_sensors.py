"""Windows of time as Kafka's sampled statistics have them, and quantiles of the latest values."""

import math

import pytest

from kvorum.node.metrics.sensors import (
    LATEST_COUNT,
    WINDOW_MS,
    LatestRows,
    LatestValues,
    WindowedSensor,
)


def test_a_window_knows_mean_and_maximum() -> None:
    sensor = WindowedSensor(0)
    for value in (1.0, 2.0, 6.0):
        sensor.record(value, 10)
    assert sensor.average(20) == 3
    assert sensor.maximum(20) == 6


def test_without_values_the_mean_is_undefined() -> None:
    sensor = WindowedSensor(0)
    assert math.isnan(sensor.average(0))
    assert math.isnan(sensor.maximum(0))
    assert sensor.rate_per_second(0) == 0


def test_a_rate_is_of_a_whole_window_at_least() -> None:
    sensor = WindowedSensor(0)
    sensor.record(60, 1_000)
    # As in Kafka: a window that is not there yet counts as if it had been empty.
    assert sensor.rate_per_second(10_000) == pytest.approx(60 * 1000 / (10_000 + WINDOW_MS))
    assert sensor.rate_per_second(40_000) == pytest.approx(60 * 1000 / 40_000)


def test_two_windows_are_kept_and_no_more() -> None:
    sensor = WindowedSensor(0)
    sensor.record(100, 0)
    sensor.record(1, WINDOW_MS)
    assert sensor.maximum(WINDOW_MS) == 100
    sensor.record(2, 2 * WINDOW_MS)
    assert sensor.maximum(2 * WINDOW_MS) == 2


def test_what_is_long_ago_is_forgotten_without_anything_new() -> None:
    sensor = WindowedSensor(0)
    sensor.record(5, 0)
    assert sensor.maximum(2 * WINDOW_MS - 1) == 5
    assert math.isnan(sensor.maximum(2 * WINDOW_MS))
    assert sensor.rate_per_second(2 * WINDOW_MS) == 0


def test_quantiles_lie_between_values_in_proportion() -> None:
    values = LatestValues()
    for value in range(1, 100):
        values.record(value)
    known = values.distribution()
    assert (known.count, known.total) == (99, 4950)
    assert dict(known.quantiles)[0.5] == 50
    assert dict(known.quantiles)[0.95] == 95
    assert dict(known.quantiles)[0.999] == 99


def test_quantiles_are_of_the_latest_values_but_the_count_is_of_all() -> None:
    values = LatestValues()
    for _ in range(LATEST_COUNT):
        values.record(1_000)
    for _ in range(LATEST_COUNT):
        values.record(1)
    known = values.distribution()
    assert known.count == 2 * LATEST_COUNT
    assert {quantile for _, quantile in known.quantiles} == {1}


def test_no_values_have_no_quantiles() -> None:
    assert LatestValues().distribution().quantiles == ()


def test_rows_have_a_distribution_of_each_column() -> None:
    rows = LatestRows(2)
    assert [each.count for each in rows.distributions()] == [0, 0]
    for value in range(1, 100):
        rows.record((value, 7))
    first, second = rows.distributions()
    assert (first.count, first.total, dict(first.quantiles)[0.5]) == (99, 4950, 50)
    assert (second.count, second.total, dict(second.quantiles)[0.5]) == (99, 693, 7)
    for _ in range(LATEST_COUNT + 5):
        rows.record((3, 4))
    first, _ = rows.distributions()
    assert (first.count, {quantile for _, quantile in first.quantiles}) == (LATEST_COUNT + 104, {3})
