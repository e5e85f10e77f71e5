"""Python's garbage collector in a process that is a node: no pause grows with the metadata.

A full collection looks at every object there is: with a million partitions that is a pause of
seconds, in which a leader is taken for dead. What the image is made of never is garbage in cycles;
it goes when nothing refers to it any more, without the collector. So whatever outlives a
collection that took long is exempt from all later ones. What is lost by that are cycles among
such objects that come apart later: at most what was alive at these few moments.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Final

YOUNG_OBJECTS_MAX: Final = 10_000
"""A request for a hundred topics makes some thousand objects, and most of them die with it."""
PAUSE_MS_MAX: Final = 25.0
"""Far below the timeouts of a quorum; some hundred thousand objects."""
_FULL: Final = 2


def bound_pauses() -> None:
    """Keep full collections of this process short from now on."""
    _, middle, full = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS_MAX, middle, full)
    gc.callbacks.append(PauseLimit(freeze=gc.freeze, used_seconds=time.thread_time))


class PauseLimit:
    """A callback of the collector: exempts what outlived a full collection that took long.

    `used_seconds` tells the processor time of the thread: how busy the machine is does not count.
    """

    def __init__(self, *, freeze: Callable[[], None], used_seconds: Callable[[], float]) -> None:
        self._freeze = freeze
        self._used_seconds = used_seconds
        self._started_seconds = 0.0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Take the time of full collections."""
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._started_seconds = self._used_seconds()
        elif (self._used_seconds() - self._started_seconds) * 1000 > PAUSE_MS_MAX:
            self._freeze()
