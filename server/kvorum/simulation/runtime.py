"""The runtime of a simulated node's driver: its time and turns come from the world."""

from collections.abc import Callable
from random import Random

from kvorum.node.runtime import Timer
from kvorum.simulation.events import Event, Events, NodeClock

BLOCKING_MS_MEAN = 1.0
TELLING_MS_MEAN = 0.1
_IDLE_LOOK_MS = 1.0
ROUNDING_MS = 1e-6
"""Added to every deadline, so that the node's clock has reached it when the event comes."""


class SimulatedRuntime:
    """The runtime of one process; a process that has ended gets no turn.

    `turn` calls back as one event of the process, now or after its pause. `do_work` does a blocking
    piece of work, and raises the work's own errors.
    """

    def __init__(
        self,
        events: Events,
        clock: NodeClock,
        random: Random,
        *,
        turn: Callable[[Callable[[], None]], None],
        do_work: Callable[[Callable[[], object]], object] = lambda work: work(),
    ) -> None:
        self.work_count = 0
        self._events = events
        self._clock = clock
        self._random = random
        self._turn = turn
        self._do_work = do_work

    def monotonic_ms(self) -> float:
        """Return the node's monotonic time."""
        return self._clock.monotonic_ms()

    def wall_ms(self) -> int:
        """Return the node's calendar time."""
        return self._clock.wall_ms()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in a turn of its own."""
        self._events.after(0.0, lambda: self._turn(callback))

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """Call back in a turn of its own."""
        self.call_soon(callback)

    def run_in_loop(self, work: Callable[[], None]) -> None:
        """Do something at once: blocking work takes its time before it is done."""
        work()

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back when the node's clock shows `deadline_ms`."""
        return SimulatedTimer(self, deadline_ms, callback)

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back after `delay_ms` of the node's clock."""
        return self.call_at(self.monotonic_ms() + delay_ms, callback)

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        """Do work after a delay, and report it after another: a crash may come between."""
        self.work_count += 1

        def do_work() -> None:
            error: Exception | None = None
            try:
                self._do_work(work)
            except Exception as raised:  # noqa: BLE001 - the caller gets the error
                error = raised
            self._later(TELLING_MS_MEAN, lambda: tell(error))

        def tell(error: Exception | None) -> None:
            self.work_count -= 1
            then(error)

        self._later(BLOCKING_MS_MEAN, do_work)

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back once no work is under way; check again every millisecond."""
        if self.work_count:
            self.call_after(_IDLE_LOOK_MS, lambda: self.when_idle(callback))
        else:
            callback()

    def _later(self, mean_ms: float, callback: Callable[[], None]) -> None:
        self._events.after(self._random.expovariate(1.0) * mean_ms, lambda: self._turn(callback))

    def plan(self, deadline_ms: float, callback: Callable[[], None]) -> Event:
        """Plan a callback for a time of the node's clock."""
        at_ms = self._clock.world_ms(deadline_ms) + ROUNDING_MS
        return self._events.at(at_ms, lambda: self._turn(callback))


class SimulatedTimer:
    """A timer by the node's clock, even where the clock slows down."""

    def __init__(
        self, runtime: SimulatedRuntime, deadline_ms: float, callback: Callable[[], None]
    ) -> None:
        self._runtime = runtime
        self._deadline_ms = deadline_ms
        self._callback = callback
        self._is_off = False
        self._event = runtime.plan(deadline_ms, self._ring)

    def cancel(self) -> None:
        """Cancel the timer, even one that is due and waits for the end of a pause."""
        self._is_off = True
        self._event.cancel()

    def _ring(self) -> None:
        if self._is_off:
            return
        if self._runtime.monotonic_ms() < self._deadline_ms:
            # The clock has slowed down since this was planned, or the sum was rounded.
            self._event = self._runtime.plan(self._deadline_ms, self._ring)
        else:
            self._callback()
