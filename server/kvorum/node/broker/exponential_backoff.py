"""Pauses before requests are sent again, which double (Kafka's ExponentialBackoffManager)."""

from collections.abc import Callable
from typing import Final, NamedTuple

MULTIPLIER: Final = 2.0
JITTER: Final = 0.2
"""The part of a pause by which it may be longer or shorter."""


class ExponentialBackoff(NamedTuple):
    """The pauses of one kind of requests.

    `initial_ms` is half of the first pause, `max_ms` the longest one. `draw` returns a number from
    0 up to 1, for the jitter.
    """

    initial_ms: int
    max_ms: int
    draw: Callable[[], float]

    def pause_ms(self, failure_count: int) -> float:
        """Return the pause after so many failures."""
        backoff_ms = min(self.initial_ms * MULTIPLIER**failure_count, self.max_ms)
        spread = 1 + JITTER * (2 * self.draw() - 1)
        return min(backoff_ms * spread, self.max_ms)
