"""The requests of a broker that wait for partitions to change (DelayedOperationPurgatory).

What waits is called by the partitions it waits for; nothing polls. One record may be what thousands
of consumers wait for: they are woken some at a time, so that others are served in between.
"""

from collections.abc import Callable, Collection
from functools import partial
from itertools import islice
from typing import Final, Protocol

from kvorum.broker.partition_watchers import PartitionWatchers
from kvorum.node.coroutines import Pulse
from kvorum.node.runtime import Runtime

WOKEN_AT_ONCE: Final = 32
"""The number that goes on in one turn of the event loop; each takes some 0.1 ms."""


class WatchedPartition(Protocol):
    """A partition that calls its watchers when it changes."""

    @property
    def watchers(self) -> PartitionWatchers:
        """The callbacks for whenever there may be more to read, or the leader changes."""
        ...


class DelayedOperationPurgatory:
    """The requests of one kind that wait.

    `delayed_count` is how many they are, `watched_count` how many partitions they watch together,
    and `expired_count` how many have been answered because their time was up.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.delayed_count = 0
        self.watched_count = 0
        self.expired_count = 0
        # In the order in which they were called, by the partitions or by one of them.
        self._to_be_woken: dict[Pulse, None] = {}
        self._is_waking = False

    async def wait_until(
        self,
        is_complete: Callable[[], bool],
        partitions: Collection[WatchedPartition],
        *,
        timeout_ms: float,
    ) -> bool:
        """Wait for changes of `partitions` until `is_complete`; return False if time is up first.

        Even without any time the condition is looked at once.
        """
        if is_complete():
            return True
        if timeout_ms <= 0:
            self.expired_count += 1
            return False
        changed = Pulse(self._runtime)
        wake = partial(self._wake, changed)
        for partition in partitions:
            partition.watchers.add(wake)
        self.delayed_count += 1
        self.watched_count += len(partitions)
        try:
            is_in_time = await changed.until(is_complete, timeout_ms)
            if not is_in_time:
                self.expired_count += 1
            return is_in_time
        finally:
            self.delayed_count -= 1
            self.watched_count -= len(partitions)
            for partition in partitions:
                partition.watchers.discard(wake)
            self._to_be_woken.pop(changed, None)

    def _wake(self, changed: Pulse) -> None:
        """Have one that waits look again; the first one at once."""
        self._to_be_woken[changed] = None
        if not self._is_waking:
            self._wake_some()

    def _wake_some(self) -> None:
        some = list(islice(self._to_be_woken, WOKEN_AT_ONCE))
        for changed in some:
            del self._to_be_woken[changed]
            changed.beat()
        self._is_waking = bool(some)
        if some:
            self._runtime.call_soon(self._wake_some)


class Purgatories:
    """The requests of a broker that wait, by kind."""

    def __init__(self, runtime: Runtime) -> None:
        self.produce = DelayedOperationPurgatory(runtime)
        self.fetch = DelayedOperationPurgatory(runtime)
        self.delete_records = DelayedOperationPurgatory(runtime)
        self.share_fetch = DelayedOperationPurgatory(runtime)
