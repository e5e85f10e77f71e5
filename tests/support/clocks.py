"""A clock for tests that say themselves how time passes."""

from kvorum.node.clock import Clock


class StandingClock(Clock):
    """A clock that stands where it is put."""

    now_ms = 0.0

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return int(self.now_ms)
