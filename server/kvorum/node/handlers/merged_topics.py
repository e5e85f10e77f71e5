"""Topics of a request that names one of them more than once, or without partitions."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Topic = TypeVar("Topic", bound=Hashable)
Requested = TypeVar("Requested")


def last_requested(
    topics: Iterable[tuple[Topic, Iterable[Requested]]], index: Callable[[Requested], int]
) -> dict[Topic, list[Requested]]:
    """Return the requested partitions of each topic; as in Kafka, the last of several counts.

    `index` returns the index of a requested partition. Topics without a partition are left out.
    """
    found: dict[Topic, dict[int, Requested]] = {}
    for topic, partitions in topics:
        found.setdefault(topic, {}).update(
            (index(requested), requested) for requested in partitions
        )
    return {topic: list(partitions.values()) for topic, partitions in found.items() if partitions}
