"""The collector's full collections stay short however much metadata there is."""

import itertools

from kvorum.node.garbage import PAUSE_MS_MAX, PauseLimit

JUST_TOO_LONG_SECONDS = (PAUSE_MS_MAX + 1) / 1000
SHORT_SECONDS = (PAUSE_MS_MAX - 1) / 1000


class Collector:
    """Counts how often everything was exempt, after collections that take as long as one says."""

    def __init__(self, seconds: float) -> None:
        self.frozen_count = 0
        times = itertools.count(start=0.0, step=seconds)
        self._limit = PauseLimit(freeze=self._freeze, used_seconds=lambda: next(times))

    def _freeze(self) -> None:
        self.frozen_count += 1

    def collect(self, generation: int) -> None:
        info = {"generation": generation, "collected": 0, "uncollectable": 0}
        self._limit("start", info)
        self._limit("stop", info)


def test_what_outlives_a_long_full_collection_is_exempt() -> None:
    collector = Collector(JUST_TOO_LONG_SECONDS)
    collector.collect(2)
    assert collector.frozen_count == 1


def test_after_a_short_one_nothing_is() -> None:
    collector = Collector(SHORT_SECONDS)
    collector.collect(2)
    assert collector.frozen_count == 0


def test_collections_of_young_objects_do_not_count() -> None:
    collector = Collector(JUST_TOO_LONG_SECONDS)
    collector.collect(0)
    collector.collect(1)
    assert collector.frozen_count == 0
