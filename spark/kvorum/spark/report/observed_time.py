"""The time that a cluster's tables cover, and the window of it that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvorum.spark.report.rows import MISSING, Int64s
from kvorum.spark.report.tables_directory import ClusterTables, NothingCoveredError
from kvorum.spark.report.texts import time_text
from kvorum.spark.report.time_window import SECOND_MS, TimeWindow

_TIME_COLUMNS: Final = (
    ("quorum_epochs", ("from_time", "to_time")),
    ("quorum_voters", ("from_time", "to_time")),
    ("partition_timeline", ("from_time", "to_time")),
    ("broker_states", ("from_time", "to_time")),
    ("config_history", ("time",)),
    ("acl_history", ("time",)),
    ("quota_history", ("time",)),
    ("scram_history", ("time",)),
    ("feature_history", ("time",)),
    ("delegation_token_history", ("time",)),
)


def window_of(
    tables: ClusterTables, *, since_ms: int | None = None, until_ms: int | None = None
) -> TimeWindow | None:
    """Return the window from `since_ms` to `until_ms`, limited to the time that the tables cover.

    Returns None where no table has a time. Raises `NothingCoveredError` for a window without any of
    the time that the tables cover.
    """
    extremes = [(int(known.min()), int(known.max())) for known in _known_times(tables)]
    if not extremes:
        return None
    first = min(begin for begin, _ in extremes)
    last = max(end for _, end in extremes)
    begin = first if since_ms is None else max(first, since_ms)
    end = last if until_ms is None else min(last, until_ms)
    if begin > end:
        raise NothingCoveredError(
            f"the tables of cluster {tables.cluster_id!r} cover {time_text(first)} to "
            f"{time_text(last)} UTC, and nothing of the time that is asked for"
        )
    # Charts need some width, also those of a log with one time alone.
    return TimeWindow(min(begin, end - SECOND_MS), end)


def _known_times(tables: ClusterTables) -> Iterator[Int64s]:
    """Yield the times of each column that has any."""
    for table, names in _TIME_COLUMNS:
        rows = tables.read(table, names)
        for name in names:
            times = rows.times_ms(name)
            yield from _any(times[times != MISSING])
    # The end of an open interval is the time of the log's last record.
    rows = tables.read("availability", ("from_time", "duration_ms"))
    begins, durations = rows.times_ms("from_time"), rows.integers("duration_ms")
    known = (begins != MISSING) & (durations != MISSING)
    yield from _any(begins[known] + durations[known])


def _any(times: Int64s) -> Iterator[Int64s]:
    if len(times):
        yield times
