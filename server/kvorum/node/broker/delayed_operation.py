"""Requests that wait for partitions to change: Kafka's DelayedOperationPurgatory.

What waits is called by the partitions it waits for; nothing polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from kvorum.broker.partition import Partition

_MS_PER_S: Final = 1000


class DelayedOperationPurgatory:
    """The requests of one kind that wait.

    `delayed_count` is how many they are, `watched_count` how many partitions they watch together.
    """

    def __init__(self) -> None:
        self.delayed_count = 0
        self.watched_count = 0

    async def wait_until(
        self,
        is_complete: Callable[[], bool],
        partitions: Collection[Partition],
        *,
        timeout_ms: float,
    ) -> bool:
        """Wait for changes of `partitions` until `is_complete`; return False if time is up first.

        Even without any time the condition is looked at once.
        """
        if is_complete():
            return True
        if timeout_ms <= 0:
            return False
        changed = asyncio.Event()
        for partition in partitions:
            partition.watch(changed.set)
        self.delayed_count += 1
        self.watched_count += len(partitions)
        try:
            async with asyncio.timeout(timeout_ms / _MS_PER_S):
                while not is_complete():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return is_complete()
        finally:
            self.delayed_count -= 1
            self.watched_count -= len(partitions)
            for partition in partitions:
                partition.unwatch(changed.set)
        return True


class Purgatories:
    """The requests of a broker that wait, by kind."""

    def __init__(self) -> None:
        self.produce = DelayedOperationPurgatory()
        self.fetch = DelayedOperationPurgatory()
        self.delete_records = DelayedOperationPurgatory()
