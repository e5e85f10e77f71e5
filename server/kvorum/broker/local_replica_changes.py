"""The replicas of one broker that a change of the image concerns (Kafka's LocalReplicaChanges)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.storage.topic_partition import TopicPartition


class PartitionInfo(NamedTuple):
    """A partition by name and by topic id, with its state in the metadata log."""

    topic_partition: TopicPartition
    topic_id: bytes
    registration: PartitionRegistration

    @property
    def key(self) -> tuple[bytes, int]:
        """The topic id and the index."""
        return self.topic_id, self.topic_partition.partition

    def is_fetchable(self, broker_id: int) -> bool:
        """Return whether another broker leads the partition, and does not count on this one.

        A replica in the ISR, or eligible as a leader, vouches for what is committed: only another
        one may begin with an empty log.
        """
        state = self.registration
        vouching = {state.leader, *state.isr, *state.elr, *state.last_known_elr}
        return state.has_leader and broker_id not in vouching


@dataclass(frozen=True, slots=True)
class LocalReplicaChanges:
    """The partitions that the broker leads or follows in another way, and those that it loses."""

    leaders: list[PartitionInfo] = field(default_factory=list[PartitionInfo])
    followers: list[PartitionInfo] = field(default_factory=list[PartitionInfo])
    deletes: list[PartitionInfo] = field(default_factory=list[PartitionInfo])


def local_changes(
    before: TopicsImage,
    after: TopicsImage,
    broker_id: int,
    *,
    again: Collection[tuple[bytes, int]] = (),
) -> LocalReplicaChanges:
    """Return the changes from one image to a later one for the replicas of `broker_id`.

    The partitions in `again`, by topic id and index, count as new. They come in the order of their
    topics' ids and of their numbers, whatever the order of the images.
    """
    changes = LocalReplicaChanges()
    if before is after and not again:
        return changes
    topics_again = {topic_id for topic_id, _ in again}
    for topic_id, topic in after.by_id.items():
        old = before.by_id.get(topic_id)
        if old is not topic or topic_id in topics_again:
            compare_topic(old, topic, broker_id, changes, again)
    for topic_id, topic in before.by_id.items():
        if topic_id not in after.by_id:
            changes.deletes.extend(replicas_of(topic, broker_id))
    for infos in (changes.leaders, changes.followers, changes.deletes):
        infos.sort(key=lambda info: info.key)
    return changes


def compare_topic(
    old: TopicImage | None,
    new: TopicImage,
    broker_id: int,
    changes: LocalReplicaChanges,
    again: Collection[tuple[bytes, int]] = (),
) -> None:
    """Add what has changed in a topic, which is new if `old` is None."""
    for index, registration in new.partitions.in_order():
        known = None if old is None else old.partitions.get(index)
        if known is registration and (new.id, index) not in again:
            continue
        info = PartitionInfo(TopicPartition(new.name, index), new.id, registration)
        if broker_id not in registration.replicas:
            if known is not None and broker_id in known.replicas:
                changes.deletes.append(info)
        elif registration.leader == broker_id:
            changes.leaders.append(info)
        else:
            changes.followers.append(info)


def replicas_of(topic: TopicImage, broker_id: int) -> Iterator[PartitionInfo]:
    """Yield the partitions of a topic that the broker has a replica of."""
    for index, registration in topic.partitions.in_order():
        if broker_id in registration.replicas:
            yield PartitionInfo(TopicPartition(topic.name, index), topic.id, registration)
