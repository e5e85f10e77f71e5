"""Time, turns, and threads for blocking work, as code that runs in an event loop needs them.

Code written against `Runtime` runs in asyncio's loop (`AsyncioRuntime`) and in a simulated one.
"""

from collections.abc import Callable
from typing import Protocol

from kvorum.node.clock import Clock


class Timer(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the call; does nothing if it has been made."""
        ...


class Runtime(Clock, Protocol):
    """A clock, delayed calls, and threads. All callbacks come one at a time."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back after a turn for other work."""
        ...

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back when the monotonic clock reaches `deadline_ms`, or soon if it has."""
        ...

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        """Do blocking work in parallel; then call back with the error that it raised, or None."""
        ...

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back once no blocking work is under way, which may be at once."""
        ...


class ThreadedRuntime(Runtime, Protocol):
    """A runtime to which blocking work can turn while it goes on."""

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """Call back in a turn of its own; any thread may ask."""
        ...

    def run_in_loop(self, work: Callable[[], None]) -> None:
        """Do something between two callbacks, for blocking work, which waits; raise its errors."""
        ...
