"""Timing on a noisy machine: candidates run in turns, and medians are reported."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping

ROUND_SECONDS = 0.05
ROUNDS = 15


def calls_per_round(call: Callable[[], object]) -> int:
    """Return the number of calls that fill a round, found by doubling."""
    calls = 1
    while True:
        elapsed_seconds = time_calls(call, calls)
        if elapsed_seconds >= ROUND_SECONDS:
            return calls
        calls = max(calls * 2, int(calls * ROUND_SECONDS / max(elapsed_seconds, 1e-9)))


def time_calls(call: Callable[[], object], calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - started


def time_in_turns(candidates: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the seconds of a call of each candidate, the median over the rounds.

    All are timed in every round, so that drift of the machine affects all of them.
    """
    # Objects that the peers' imports left must not add to the times; the collector stays on.
    gc.collect()
    gc.freeze()
    calls = {name: calls_per_round(call) for name, call in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            samples[name].append(time_calls(call, calls[name]) / calls[name])
    return {name: statistics.median(values) for name, values in samples.items()}
