"""Threads for the writes of logs, which do nothing before a test lets them."""

from collections.abc import Callable

from kvorum.storage.log.disk_pace import SLOW_MS


class HeldThreads:
    """Work that was handed over, and the clock that measures it.

    `slow_down` lets the next write at once count as slow, so that all later ones are handed over.
    Unless it `holds`, work is done as soon as it is handed over; it holds from `slow_down` on.
    """

    def __init__(self, *, holds: bool = True) -> None:
        self.now_ms = 0.0
        self._holds = holds
        self._next_takes_ms = 0.0
        self._held: list[tuple[Callable[[], object], Callable[[Exception | None], None]]] = []

    @property
    def held_count(self) -> int:
        """The number of works that wait for `release`."""
        return len(self._held)

    def monotonic_ms(self) -> float:
        self.now_ms += self._next_takes_ms
        return self.now_ms

    def slow_down(self, write: Callable[[], object]) -> None:
        """Do something whose writes take long."""
        self._holds = True
        self._next_takes_ms = SLOW_MS
        write()
        self._next_takes_ms = 0.0

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        self._held.append((work, then))
        if not self._holds:
            self.release()

    def release(self) -> None:
        """Do the works that wait, and those that they lead to."""
        while self._held:
            work, then = self._held.pop(0)
            error: Exception | None = None
            try:
                work()
            except Exception as raised:  # noqa: BLE001 - the owner gets the error
                error = raised
            then(error)
