"""Times on command lines."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime


def time_ms(text: str) -> int:
    """Return an ISO 8601 time in milliseconds since 1970; it is in UTC where it names no zone.

    Raises ArgumentTypeError for other text.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2026-11-17 or 2026-11-17T14:30"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1000)
