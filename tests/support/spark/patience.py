"""Queries on a machine with much else to do."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

STARTS_MAX = 10
NO_PYTHON = "Python worker failed to connect back"
"""What Spark says when the Python process of a source took more than ten seconds to start."""


def start_patiently(
    start: Callable[[], StreamingQuery], is_running: Callable[[StreamingQuery], bool]
) -> StreamingQuery:
    """Start a query, again where its Python process took too long, as a user would.

    `is_running` waits until the query has come as far as to need no other such process, or has
    ended; it returns whether it went well.
    """
    for _ in range(STARTS_MAX):
        query = start()
        if is_running(query):
            return query
        error = query.exception()
        if error is None or NO_PYTHON not in str(error):
            return query
    raise AssertionError(NO_PYTHON)
