"""Kafka's Retry: work that is done again, after longer and longer pauses, for a limited time."""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

_GROWTH: Final = 2
Result = TypeVar("Result")


class RetryError(Exception):
    """A failure after which another try may succeed."""


class Retries(NamedTuple):
    """The first pause, and the time within which every try begins, in milliseconds."""

    backoff_ms: int
    backoff_ms_max: int

    def run(
        self,
        work: Callable[[], Result],
        wall_s: Callable[[], float],
        pause_s: Callable[[float], None],
    ) -> Result:
        """Return what `work` returns; raises its last RetryError, or another error at once."""
        backoff_s = self.backoff_ms / 1000
        deadline_s = wall_s() + self.backoff_ms_max / 1000
        while True:
            try:
                return work()
            except RetryError:
                left_s = deadline_s - wall_s()
                if left_s <= 0:
                    raise
            pause_s(min(backoff_s, left_s))
            backoff_s *= _GROWTH
