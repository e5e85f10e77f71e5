"""Kafka's Rate over a SampledStat: a sum of windows, by second. The time is a parameter."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

_MS_PER_S: Final = 1000.0
WIDTH_MS_MIN: Final = 1.0
"""Kafka's smallest width of all windows together."""


@dataclass(slots=True)
class _Sample:
    started_ms: float
    last_ms: float
    value: float = 0.0


@dataclass(slots=True)
class Rate:
    """Values per second over the latest `sample_count` windows.

    Windows before the first event count as empty ones. Times must not go back.
    """

    window_ms: float
    sample_count: int
    _samples: deque[_Sample] = field(default_factory=deque[_Sample])

    @property
    def last_ms(self) -> float:
        """The time of the last recorded value."""
        return self._samples[-1].last_ms if self._samples else 0.0

    def record(self, value: float, now_ms: float) -> None:
        """Add `value`; a negative one takes back what was recorded in the same window."""
        if not self._samples or now_ms - self._samples[-1].started_ms >= self.window_ms:
            self._samples.append(_Sample(now_ms, now_ms))
        self._samples[-1].value += value
        self._samples[-1].last_ms = now_ms

    def measure(self, now_ms: float) -> float:
        """Return the values per second; windows that are over are forgotten."""
        width_ms = self.window_size_ms(now_ms)
        return sum(sample.value for sample in self._samples) / (width_ms / _MS_PER_S)

    def window_size_ms(self, now_ms: float) -> float:
        """Return the width of the windows that count, full ones before the first value included."""
        self._forget(now_ms)
        elapsed_ms = now_ms - self._samples[0].started_ms if self._samples else 0.0
        missing = self.sample_count - 1 - int(elapsed_ms // self.window_ms)
        return max(WIDTH_MS_MIN, elapsed_ms + max(0, missing) * self.window_ms)

    def _forget(self, now_ms: float) -> None:
        oldest_ms = now_ms - self.sample_count * self.window_ms
        while self._samples and self._samples[0].last_ms <= oldest_ms:
            self._samples.popleft()
