"""Conditions on rows, by which files and parts of files are skipped where they are read."""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from kvorum.spark.arrow_types import TIMESTAMP, TIMESTAMP_MS_MAX
from kvorum.spark.report.time_window import TimeWindow

# The stubs of pyarrow do not know the types of columns.
_compute: Any = pyarrow.compute

Condition = pyarrow.compute.Expression
field: Final = _compute.field
"""Returns a column, which compared with a value is a condition."""


def during(column: str, window: TimeWindow) -> Condition:
    """Return the condition that a time is within the window, both ends included."""
    # A stored time may have parts of a millisecond.
    end = _time(window.end_ms + 1)
    condition: Condition = (field(column) >= _time(window.begin_ms)) & (field(column) < end)
    return condition


def after(column: str, time_ms: int) -> Condition:
    """Return the condition that a time is later than another."""
    condition: Condition = field(column) >= _time(time_ms + 1)
    return condition


def holds_at(time_ms: int) -> Condition:
    """Return the condition that a row of `from_time` and `to_time` holds at a time."""
    later = _time(time_ms + 1)
    has_begun = field("from_time").is_null() | (field("from_time") < later)
    condition: Condition = has_begun & (field("to_time").is_null() | (field("to_time") >= later))
    return condition


def is_in(column: str, values: Iterable[int]) -> Condition:
    """Return the condition that an integer is one of `values`."""
    condition: Condition = field(column).isin(pa.array(sorted(values), pa.int64()))
    return condition


def _time(time_ms: int) -> Any:
    return pa.scalar(min(time_ms, TIMESTAMP_MS_MAX) * 1000, TIMESTAMP)
