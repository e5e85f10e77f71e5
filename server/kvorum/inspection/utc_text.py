"""Write times of any year as ISO 8601."""

from datetime import UTC, datetime, timedelta
from typing import Final

# Python's calendar ends at the year 9999; the days repeat every 400 years.
_YEARS_PER_CYCLE: Final = 400
_CYCLE_MS: Final = 146_097 * 24 * 60 * 60 * 1000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def utc_text(timestamp_ms: int) -> str:
    """Return a time as ISO 8601 in UTC, without zeros at the end of the fraction.

    `timestamp_ms` is in milliseconds since 1970.
    """
    cycles, within_ms = divmod(timestamp_ms, _CYCLE_MS)
    moment = _EPOCH + timedelta(milliseconds=within_ms)
    fraction = f".{moment.microsecond // 1000:03}".rstrip("0").rstrip(".")
    year = moment.year + _YEARS_PER_CYCLE * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{moment:%m-%dT%H:%M:%S}{fraction}Z"
