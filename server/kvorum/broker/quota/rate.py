"""Kafka's Rate and SimpleRate: values per second over the latest windows.

Pure: the time is an argument.
"""

from __future__ import annotations

from typing import Final

from kvorum.broker.quota.sampled_stat import MetricConfig, SampledStat

_MS_PER_S: Final = 1000.0
WIDTH_MS_MIN: Final = 1.0
"""Kafka's smallest width of all windows together."""


class Rate:
    """Values per second; windows before the first event count as empty ones.

    Times must not go back.
    """

    def __init__(self, config: MetricConfig) -> None:
        self._config = config
        self._stat = SampledStat(config)

    @property
    def last_ms(self) -> float:
        """The time of the last recorded value, 0 before the first."""
        return self._stat.last_ms

    def record(self, value: float, now_ms: float) -> None:
        """Add `value`; a negative one takes back what was recorded in the same window."""
        self._stat.record(value, now_ms)

    def measure(self, now_ms: float) -> float:
        """Return the values per second; windows that are over are forgotten."""
        return self._stat.measure(now_ms) / (self.window_size_ms(now_ms) / _MS_PER_S)

    def window_size_ms(self, now_ms: float) -> float:
        """Return the width of the windows that count, full ones before the first value included."""
        elapsed_ms = self._stat.elapsed_ms(now_ms)
        window_ms = self._config.window_ms
        missing = self._config.sample_count - 1 - int(elapsed_ms // window_ms)
        return max(WIDTH_MS_MIN, elapsed_ms + max(0, missing) * window_ms)


class SimpleRate(Rate):
    """Values per second since the oldest event, but over one window at least."""

    def window_size_ms(self, now_ms: float) -> float:
        """Return the time since the oldest event that counts, or the length of a window."""
        return max(self._stat.elapsed_ms(now_ms), self._config.window_ms)
