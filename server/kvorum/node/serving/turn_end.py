"""The end of a turn of the event loop, for what is done together then."""

from collections.abc import Callable

from kvorum.node.runtime import Runtime


class TurnEnd:
    """Does things after all else of the turn of the loop in which they were asked for, in order.

    Responses that are sent so leave one after the other: the system wakes their reader once.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._callbacks: list[Callable[[], None]] = []

    def call(self, callback: Callable[[], None]) -> None:
        """Call back at the end of this turn; the callback raises nothing."""
        if not self._callbacks:
            self._runtime.call_soon(self._call_all)
        self._callbacks.append(callback)

    def _call_all(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
