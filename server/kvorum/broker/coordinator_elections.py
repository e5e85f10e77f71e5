"""The coordinators that start and end on one broker with a change of the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from kvorum.metadata.topics_image import TopicImage, TopicsImage

NO_LEADER_EPOCH: Final = -1
"""Stands for no epoch at all: a replica that is gone resigns whatever its last epoch was."""


class CoordinatorChange(NamedTuple):
    """A partition whose leadership this broker takes, keeps in a new epoch, or loses."""

    topic_id: bytes
    partition: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class CoordinatorElections:
    """The partitions that the broker leads, and those that it leads no longer or has lost."""

    elected: tuple[CoordinatorChange, ...] = ()
    resigned: tuple[CoordinatorChange, ...] = ()


def coordinator_elections(
    before: TopicsImage, after: TopicsImage, topic: str, broker_id: int
) -> CoordinatorElections:
    """Return the changes of the partitions of `topic` from one image to a later one."""
    old, new = before.by_name(topic), after.by_name(topic)
    if old is new:
        return CoordinatorElections()
    elected: list[CoordinatorChange] = []
    resigned: list[CoordinatorChange] = []
    if old is not None and (new is None or new.id != old.id):
        resigned += _lost(old, broker_id)
        old = None
    if new is not None:
        _compare(old, new, broker_id, elected, resigned)
    return CoordinatorElections(tuple(elected), tuple(resigned))


def deleted_topics(before: TopicsImage, after: TopicsImage) -> list[TopicImage]:
    """Return the topics that are gone; another one may have the same name."""
    if before.by_id is after.by_id:
        return []
    return [topic for topic_id, topic in before.by_id.items() if topic_id not in after.by_id]


def _compare(
    old: TopicImage | None,
    new: TopicImage,
    broker_id: int,
    elected: list[CoordinatorChange],
    resigned: list[CoordinatorChange],
) -> None:
    for index, registration in new.partitions.in_order():
        known = None if old is None else old.partitions.get(index)
        if known is registration:
            continue
        if broker_id not in registration.replicas:
            if known is not None and broker_id in known.replicas:
                resigned.append(CoordinatorChange(new.id, index, NO_LEADER_EPOCH))
        elif registration.leader == broker_id:
            elected.append(CoordinatorChange(new.id, index, registration.leader_epoch))
        else:
            resigned.append(CoordinatorChange(new.id, index, registration.leader_epoch))


def _lost(topic: TopicImage, broker_id: int) -> list[CoordinatorChange]:
    return [
        CoordinatorChange(topic.id, index, NO_LEADER_EPOCH)
        for index, registration in topic.partitions.in_order()
        if broker_id in registration.replicas
    ]
