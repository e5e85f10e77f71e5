"""On how many cores a command may run."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return on how many cores the system lets this process run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
