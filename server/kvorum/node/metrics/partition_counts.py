"""How many partitions there are, and how many of them are not well: counted when somebody asks.

Topics that are the same objects as the last time are not looked into again, and a long count lets
the event loop have its turns: the image being counted is a value, and does not change meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from kvorum.metadata.topics_image import TopicImage, TopicsImage

SLICE_MS = 5.0
"""So long the event loop is kept from everything else."""
TOPICS_PER_LOOK = 64
"""So many topics are gone through between two looks at the clock; one may be large by itself."""


class PartitionCounts(NamedTuple):
    """Partitions in all, those without a leader, and those that another replica should lead."""

    partitions: int = 0
    offline: int = 0
    imbalanced: int = 0

    def plus(self, other: PartitionCounts) -> PartitionCounts:
        """Return the sums."""
        return PartitionCounts(
            self.partitions + other.partitions,
            self.offline + other.offline,
            self.imbalanced + other.imbalanced,
        )


class PartitionCounter:
    """Counts the partitions of one image after the other, each from what changed since the last."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._image: TopicsImage | None = None
        self._counts = PartitionCounts()
        self._by_topic: dict[bytes, tuple[TopicImage, PartitionCounts]] = {}
        self._lock = asyncio.Lock()

    async def count(self, image: TopicsImage) -> PartitionCounts:
        """Return the counts of `image`; whoever asks meanwhile waits."""
        async with self._lock:
            if image is not self._image:
                self._counts = await self._count(image)
                self._image = image
            return self._counts

    async def _count(self, image: TopicsImage) -> PartitionCounts:
        by_topic: dict[bytes, tuple[TopicImage, PartitionCounts]] = {}
        counts = PartitionCounts()
        slice_end_ms = self._monotonic_ms() + SLICE_MS
        for number, (topic_id, topic) in enumerate(image.by_id.items()):
            known = self._by_topic.get(topic_id)
            if known is None or known[0] is not topic:
                known = (topic, counts_of(topic))
            by_topic[topic_id] = known
            counts = counts.plus(known[1])
            if number % TOPICS_PER_LOOK == 0 and self._monotonic_ms() >= slice_end_ms:
                await asyncio.sleep(0)
                slice_end_ms = self._monotonic_ms() + SLICE_MS
        self._by_topic = by_topic
        return counts


def counts_of(topic: TopicImage) -> PartitionCounts:
    """Return the counts of one topic."""
    offline = imbalanced = 0
    for partition in topic.partitions.values():
        offline += not partition.has_leader
        imbalanced += not partition.has_preferred_leader
    return PartitionCounts(len(topic.partitions), offline, imbalanced)
