"""The callbacks that a partition calls when it has changed (Kafka's DelayedOperations)."""

from collections.abc import Callable


class PartitionWatchers:
    """The callbacks of the requests, and of the tasks, that wait for one partition to change.

    They are called whenever there may be more to read, or the leader has changed.
    """

    def __init__(self) -> None:
        # In the order in which they came; a set would call them in any order.
        self._watchers: dict[Callable[[], None], None] = {}

    def add(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` at every change."""
        self._watchers[watcher] = None

    def discard(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` no longer."""
        self._watchers.pop(watcher, None)

    def notify(self) -> None:
        """Call every watcher; one may come or go meanwhile."""
        for watcher in tuple(self._watchers):
            watcher()
