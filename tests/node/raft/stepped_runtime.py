"""Time that a test moves, and work that waits until a test does it."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Planned:
    """Something that is to happen at a time."""

    at_ms: float
    callback: Callable[[], None]
    is_off: bool = False

    def cancel(self) -> None:
        self.is_off = True


@dataclass
class SteppedRuntime:
    """Time goes on in `advance`, and blocking work is done in `do_work`."""

    now_ms: float = 0.0
    planned: list[Planned] = field(default_factory=list[Planned])
    work: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    idle: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return int(self.now_ms)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.call_at(self.now_ms, callback)

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> Planned:
        planned = Planned(deadline_ms, callback)
        self.planned.append(planned)
        return planned

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        def both() -> None:
            error: Exception | None = None
            try:
                work()
            except Exception as raised:  # noqa: BLE001 - handed on
                error = raised
            then(error)

        self.work.append(both)

    def when_idle(self, callback: Callable[[], None]) -> None:
        self.idle.append(callback)
        self._note_idle()

    def _note_idle(self) -> None:
        while self.idle and not self.work:
            self.idle.pop(0)()

    def do_work(self) -> None:
        """Do all the work that waits, and what follows from it."""
        while self.work:
            work = self.work[0]
            work()
            self.work.remove(work)
            self._note_idle()

    def advance(self, elapsed_ms: float) -> None:
        self.now_ms += elapsed_ms
        while due := [one for one in self.planned if one.at_ms <= self.now_ms]:
            self.planned.remove(due[0])
            if not due[0].is_off:
                due[0].callback()
