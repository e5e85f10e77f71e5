"""Kafka's SampledStat, Rate and SimpleRate: sums, and values per second, over the latest windows.

Of Kafka's QuotaUtils, the time that a client waits if its rate exceeds its quota. Pure: the time is
an argument.
"""

import math
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_MS_PER_S: Final = 1000.0
WIDTH_MS_MIN: Final = 1.0
"""Kafka's smallest width of all windows together."""


class MetricConfig(NamedTuple):
    """The number of windows that are measured, and their length: ``quota.window.*`` and others."""

    sample_count: int
    window_ms: float


@dataclass(slots=True)
class _Sample:
    start_ms: float
    last_event_ms: float
    value: float = 0.0


@dataclass(slots=True)
class SampledStat:
    """The samples, each with what is recorded within a window from its first event on.

    One more sample than `sample_count` is kept, because the oldest may overlap the time that is
    measured. Times must not go back.
    """

    config: MetricConfig
    _samples: list[_Sample] = field(default_factory=list[_Sample])
    _current: int = 0

    @property
    def last_ms(self) -> float:
        """The time of the last recorded value, 0 before the first."""
        return self._samples[self._current].last_event_ms if self._samples else 0.0

    def record(self, value: float, now_ms: float) -> None:
        """Add a value."""
        self._demand_sample(now_ms)
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self.config.window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_event_ms = now_ms

    def measure(self, now_ms: float) -> float:
        """Return the sum of what is not too old."""
        self._purge_obsolete_samples(now_ms)
        return sum(sample.value for sample in self._samples)

    def elapsed_ms(self, now_ms: float) -> float:
        """Return the time since the start of the oldest sample."""
        self._demand_sample(now_ms)
        self._purge_obsolete_samples(now_ms)
        return now_ms - min(sample.start_ms for sample in self._samples)

    def _purge_obsolete_samples(self, now_ms: float) -> None:
        expire_ms = self.config.sample_count * self.config.window_ms
        for slot, sample in enumerate(self._samples):
            if now_ms - sample.last_event_ms >= expire_ms:
                self._samples[slot] = _Sample(now_ms, now_ms)

    def _demand_sample(self, now_ms: float) -> None:
        if not self._samples:
            self._samples.append(_Sample(now_ms, now_ms))

    def _advance(self, now_ms: float) -> _Sample:
        self._current = (self._current + 1) % (self.config.sample_count + 1)
        sample = _Sample(now_ms, now_ms)
        if self._current == len(self._samples):
            self._samples.append(sample)
        else:
            self._samples[self._current] = sample
        return sample


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
