"""Python's garbage collector in the process of a node: no pause grows with the metadata.

A full collection visits every object: with a million partitions that is a pause of seconds, in
which the other voters take a leader for dead. The objects of the image never form garbage in
cycles; reference counting frees them without the collector. So the objects that survive a long
collection are exempt from all later ones. The price: cycles among these objects that become
garbage later are never freed; at most what was alive at these few moments.
"""

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
    """A callback of the collector that exempts the objects that survive a long full collection.

    `used_seconds` returns the processor time of the thread, so that other load on the machine does
    not make a collection look long.
    """

    def __init__(self, *, freeze: Callable[[], None], used_seconds: Callable[[], float]) -> None:
        self._freeze = freeze
        self._used_seconds = used_seconds
        self._started_seconds = 0.0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Measure the time of a full collection."""
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._started_seconds = self._used_seconds()
        elif (self._used_seconds() - self._started_seconds) * 1000 > PAUSE_MS_MAX:
            self._freeze()
