"""The peak of the memory that a piece of code takes."""

import gc
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def peak_memory_below(limit_bytes: int) -> Generator[None]:
    """Fail when what Python allocates inside the block ever exceeds `limit_bytes`."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= limit_bytes
