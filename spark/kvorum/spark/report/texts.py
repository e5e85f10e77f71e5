"""Times, durations and numbers as readers see them; times are in UTC."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from kvorum.spark.report.rows import MISSING
from kvorum.spark.report.time_window import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

_UNITS: Final = ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s"))


def time_text(time_ms: int) -> str:
    """Return a time to the second: 2026-11-17 14:03:11."""
    return "unknown time" if time_ms == MISSING else _time(time_ms).strftime("%Y-%m-%d %H:%M:%S")


def clock_text(time_ms: int) -> str:
    """Return the time of day: 14:03:11."""
    return _time(time_ms).strftime("%H:%M:%S")


def day_text(time_ms: int) -> str:
    """Return the day of a time with its weekday: Tue 2026-11-17."""
    return _time(time_ms).strftime("%a %Y-%m-%d")


def duration_text(duration_ms: int) -> str:
    """Return a duration in its two largest units: 2 d 14 h, 3 min 5 s, 250 ms."""
    if duration_ms < SECOND_MS:
        return f"{duration_ms} ms"
    for (unit, name), (smaller, smaller_name) in pairwise(_UNITS):
        if duration_ms >= unit:
            rest = duration_ms % unit // smaller
            return f"{duration_ms // unit} {name}" + (f" {rest} {smaller_name}" if rest else "")
    return f"{duration_ms // SECOND_MS} s"


def count_text(count: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun: 1 partition, 1,234 partitions."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def cut_text(text: str, length_max: int = 120) -> str:
    """Return a text of at most `length_max` characters, with an ellipsis where it is cut."""
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"


def _time(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)
