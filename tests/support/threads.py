"""The threads that a test starts: one that does not end in time is a failure that names it."""

import threading
from collections.abc import Callable

from tests.support.waiting import PATIENCE_S


class Threads:
    """Threads of a test, none of which keeps the run from its end."""

    def __init__(self) -> None:
        self.patience_s = PATIENCE_S
        self._threads: list[threading.Thread] = []

    def start(self, work: Callable[..., object], *arguments: object) -> None:
        """Do something in a thread of its own; an error in it is pytest's to report."""
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    @property
    def are_alive(self) -> bool:
        """Whether one has not ended."""
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        """Wait until all have ended."""
        for thread in self._threads:
            thread.join(self.patience_s)
            assert not thread.is_alive(), f"a thread does not end: {thread.name}"
