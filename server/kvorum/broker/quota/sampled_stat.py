"""A sum over the latest windows (Kafka's SampledStat). Pure: the time is an argument."""

from dataclasses import dataclass, field
from typing import NamedTuple


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
