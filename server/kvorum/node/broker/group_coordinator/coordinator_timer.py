"""The timers of one coordinator, by key (CoordinatorTimer)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kvorum.groups.effects import CancelTimer, SetTimer, Timeout

_MS_PER_S: Final = 1000


class CoordinatorTimer:
    """Calls `fire` with a timeout when its time has come; a key has one timer at most."""

    def __init__(self, fire: Callable[[Timeout], None]) -> None:
        self._fire = fire
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def apply(self, change: SetTimer | CancelTimer) -> None:
        """Set, replace or cancel a timer."""
        if isinstance(change, CancelTimer):
            self._cancel(change.key)
            return
        self._cancel(change.timeout.key)
        self._handles[change.timeout.key] = asyncio.get_running_loop().call_later(
            change.delay_ms / _MS_PER_S, self._fired, change.timeout
        )

    def cancel_all(self) -> None:
        """Cancel every timer."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()

    def _cancel(self, key: str) -> None:
        handle = self._handles.pop(key, None)
        if handle is not None:
            handle.cancel()

    def _fired(self, timeout: Timeout) -> None:
        del self._handles[timeout.key]
        self._fire(timeout)
