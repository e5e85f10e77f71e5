"""The peak of the memory that a piece of code takes."""

import gc
import sys
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

SWITCH_INTERVAL_S: Final = 10.0
"""Much longer than any measure."""


@contextmanager
def peak_memory_below(limit_bytes: int) -> Generator[None]:
    """Fail when what Python allocates inside the block ever exceeds `limit_bytes`."""
    gc.collect()
    with other_threads_waiting():
        tracemalloc.start()
        try:
            yield
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak <= limit_bytes


@contextmanager
def other_threads_waiting() -> Generator[None]:
    """Let other threads of the process, whose memory is measured as well, not take over.

    One that waits already, as the one that talks to the test runner, may do so once.
    """
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval_s)
