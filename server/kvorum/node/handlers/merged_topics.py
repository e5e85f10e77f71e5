"""Topics of a request that names one of them more than once, or without partitions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Topic = TypeVar("Topic", bound=Hashable)
Wish = TypeVar("Wish")


def last_wishes(
    topics: Iterable[tuple[Topic, Iterable[Wish]]], index: Callable[[Wish], int]
) -> dict[Topic, list[Wish]]:
    """Return the wishes of each topic; as in Kafka, the last one about a partition counts.

    `index` returns the partition of a wish. Topics without a partition are left out.
    """
    found: dict[Topic, dict[int, Wish]] = {}
    for topic, wishes in topics:
        found.setdefault(topic, {}).update((index(wish), wish) for wish in wishes)
    return {topic: list(wishes.values()) for topic, wishes in found.items() if wishes}
