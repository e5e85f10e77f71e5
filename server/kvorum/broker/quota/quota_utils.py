"""The time that a client waits if it exceeds its quota (Kafka's QuotaUtils)."""

from __future__ import annotations

import math

from kvorum.broker.quota.rate import Rate


def throttle_time_ms(rate: Rate, bound: float, now_ms: float) -> float:
    """Return the whole milliseconds after which `rate` is down to `bound`, 0 if it is not above.

    With a rate of O over a width of W, a delay of X brings it down to the bound T if
    O * W / (W + X) = T. A bound of 0 is never reached: the result is infinite.
    """
    observed = rate.measure(now_ms)
    if bound <= 0:
        return math.inf
    if observed <= bound:
        return 0.0
    # Java rounds half up.
    return math.floor((observed - bound) / bound * rate.window_size_ms(now_ms) + 0.5)


def bounded_throttle_time_ms(rate: Rate, bound: float, now_ms: float, *, max_ms: float) -> float:
    """Return the time that `throttle_time_ms` returns, or `max_ms` if that is less."""
    return min(throttle_time_ms(rate, bound, now_ms), max_ms)
