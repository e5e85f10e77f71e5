"""Times of Kafka's records as Spark's timestamps."""

from __future__ import annotations

from typing import Final

# The last millisecond of the year 9999, in UTC: the range of Spark's timestamps ends there, and
# neither Python nor Spark's own functions can show a later time.
TIMESTAMP_MS_MAX: Final = 253_402_300_799_999


def timestamp_us(timestamp_ms: int) -> int | None:
    """Return a time in Spark's microseconds; None for "no timestamp" and a time out of range."""
    return timestamp_ms * 1000 if 0 <= timestamp_ms <= TIMESTAMP_MS_MAX else None
