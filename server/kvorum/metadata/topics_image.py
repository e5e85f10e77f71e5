"""Topics and their partitions, folded from topic and partition records."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from immutables import Map, MapMutation

from kvorum.metadata.errors import ReplayError
from kvorum.metadata.partition import (
    NO_LEADER,
    NO_PARTITIONS,
    PartitionRegistration,
    Partitions,
    PartitionsEditor,
    merge_partition_change,
    partition_from_record,
    without_elr,
)
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.uuid_text import uuid_to_text

KINDS_MAX: Final = 16_384
"""More than the ways to place three replicas on 25 brokers. With more distinct values than this,
sharing whole partitions saves little, and the cache is cleared again and again."""


class BrokerPartitions(NamedTuple):
    """The number of partitions that a broker leads, is in sync with, and is in the ELR of."""

    led: int = 0
    in_sync: int = 0
    eligible: int = 0


NONE_OF_BROKER: Final = BrokerPartitions()


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """Counts over all partitions of an image; brokers with zero counts are left out.

    `not_preferred` counts the partitions that their first replica does not lead, including those
    without a leader.
    """

    all: int = 0
    leaderless: int = 0
    not_preferred: int = 0
    brokers: Map[int, BrokerPartitions] = field(default_factory=Map[int, BrokerPartitions])

    def of_broker(self, broker_id: int) -> BrokerPartitions:
        """Return the counts of one broker."""
        return self.brokers.get(broker_id, NONE_OF_BROKER)


class PartitionCountsEditor:
    """A builder of new counts from the partitions that are added and removed."""

    __slots__ = ("_base", "_changes")

    def __init__(self, base: PartitionCounts) -> None:
        self._base = base
        # Keyed by value: many partitions are equal, and each value is examined only once.
        self._changes: dict[PartitionRegistration, int] = {}

    def add(self, partition: PartitionRegistration) -> None:
        """Count a partition that is added."""
        self._changes[partition] = self._changes.get(partition, 0) + 1

    def remove(self, partition: PartitionRegistration) -> None:
        """Count a partition that is removed."""
        self._changes[partition] = self._changes.get(partition, 0) - 1

    def finish(self) -> PartitionCounts:
        """Return the counts with all changes so far."""
        if not self._changes:
            return self._base
        base = self._base
        everything, leaderless, not_preferred = base.all, base.leaderless, base.not_preferred
        brokers: dict[int, list[int]] = {}
        for partition, count in self._changes.items():
            if count:
                everything += count
                leaderless += 0 if partition.has_leader else count
                not_preferred += 0 if partition.has_preferred_leader else count
                _count_brokers(brokers, partition, count)
        self._changes = {}
        self._base = PartitionCounts(
            everything, leaderless, not_preferred, _summed(base.brokers, brokers)
        )
        return self._base


def _count_brokers(
    brokers: dict[int, list[int]], partition: PartitionRegistration, count: int
) -> None:
    if partition.leader != NO_LEADER:
        brokers.setdefault(partition.leader, [0, 0, 0])[0] += count
    for broker_id in partition.isr:
        brokers.setdefault(broker_id, [0, 0, 0])[1] += count
    for broker_id in partition.elr:
        brokers.setdefault(broker_id, [0, 0, 0])[2] += count


def _summed(
    base: Map[int, BrokerPartitions], changes: dict[int, list[int]]
) -> Map[int, BrokerPartitions]:
    summed = base.mutate()
    for broker_id, (led, in_sync, eligible) in changes.items():
        before = summed.get(broker_id, NONE_OF_BROKER)
        after = BrokerPartitions(
            before.led + led, before.in_sync + in_sync, before.eligible + eligible
        )
        if after != NONE_OF_BROKER:
            summed[broker_id] = after
        elif before is not NONE_OF_BROKER:
            del summed[broker_id]
    return summed.finish()


class SharedPartitions:
    """A cache that returns one object for equal partitions, and for their replicas and directories.

    A caller gets an equal value in any case, also after the cache was cleared. An image passes its
    cache on to the images that are made from it.
    """

    __slots__ = ("_directories", "_ids", "_partitions", "_replicas")

    def __init__(self) -> None:
        self._partitions: dict[PartitionRegistration, PartitionRegistration] = {}
        self._replicas: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._directories: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
        self._ids: dict[bytes, bytes] = {}

    def share(self, partition: PartitionRegistration) -> PartitionRegistration:
        """Return the cached partition that equals `partition`, which is added otherwise."""
        known = self._partitions.get(partition)
        return self._remember(partition) if known is None else known

    def _remember(self, partition: PartitionRegistration) -> PartitionRegistration:
        if len(self._partitions) >= KINDS_MAX:
            self._partitions.clear()
            self._replicas.clear()
            self._directories.clear()
            self._ids.clear()
        replicas = self._share_replicas(partition.replicas)
        made = PartitionRegistration(
            replicas,
            self._share_directories(partition.directories),
            self._share_replicas(partition.isr),
            self._share_replicas(partition.removing_replicas),
            self._share_replicas(partition.adding_replicas),
            next((id_ for id_ in replicas if id_ == partition.leader), partition.leader),
            partition.leader_recovery_state,
            partition.leader_epoch,
            partition.partition_epoch,
            self._share_replicas(partition.elr),
            self._share_replicas(partition.last_known_elr),
        )
        self._partitions[made] = made
        return made

    def _share_replicas(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        return self._replicas.setdefault(replicas, replicas)

    def _share_directories(self, directories: tuple[bytes, ...]) -> tuple[bytes, ...]:
        known = self._directories.get(directories)
        if known is None:
            known = tuple(self._ids.setdefault(id_, id_) for id_ in directories)
            self._directories[known] = known
        return known


class TopicImage(NamedTuple):
    """A topic with its partitions by index."""

    name: str
    id: bytes
    partitions: Partitions = NO_PARTITIONS

    def sorted_partitions(self) -> list[tuple[int, PartitionRegistration]]:
        """Return index and partition, in order of index."""
        return list(self.partitions.in_order())


@dataclass(frozen=True, slots=True)
class TopicsImage:
    """Every topic by id, and the id of each by name; `counts` covers all their partitions."""

    by_id: Map[bytes, TopicImage] = field(default_factory=Map[bytes, TopicImage])
    ids: Map[str, bytes] = field(default_factory=Map[str, bytes])
    counts: PartitionCounts = field(default_factory=PartitionCounts)
    shared: SharedPartitions = field(
        default_factory=SharedPartitions, repr=False, compare=False, kw_only=True
    )

    def by_name(self, name: str) -> TopicImage | None:
        """Return the topic called `name`, None without one."""
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def partition(self, topic_id: bytes, index: int) -> PartitionRegistration | None:
        """Return one partition, None without one."""
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def sorted_topics(self) -> list[TopicImage]:
        """Return every topic in order of name."""
        return [self.by_id[self.ids[name]] for name in sorted(self.ids)]


class TopicsEditor:
    """A builder that folds records into a `TopicsImage`, changing shared maps only once."""

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._shared = image.shared
        self._by_id: MapMutation[bytes, TopicImage] | None = None
        self._ids: MapMutation[str, bytes] | None = None
        self._partitions: dict[bytes, PartitionsEditor] = {}
        self._counts = PartitionCountsEditor(image.counts)

    def finish(self) -> TopicsImage:
        """Return the image with all records folded so far."""
        if self._by_id is not None and self._ids is not None:
            for topic_id, partitions in self._partitions.items():
                name = self._by_id[topic_id].name
                self._by_id[topic_id] = TopicImage(name, topic_id, partitions.finish())
            self._image = TopicsImage(
                self._by_id.finish(), self._ids.finish(), self._counts.finish(), shared=self._shared
            )
            self._by_id = self._ids = None
            self._partitions = {}
        return self._image

    def __contains__(self, topic_id: bytes) -> bool:
        """Return whether there is a topic with this id, after the records so far."""
        return topic_id in (self._image.by_id if self._by_id is None else self._by_id)

    def partition(self, topic_id: bytes, index: int) -> PartitionRegistration | None:
        """Return one partition after the records so far, None without one."""
        edited = self._partitions.get(topic_id)
        if edited is not None:
            return edited.get(index)
        topics = self._image.by_id if self._by_id is None else self._by_id
        topic = topics.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def create_topic(self, record: TopicRecord) -> None:
        """Fold a TopicRecord."""
        by_id, ids = self._maps()
        if record.name in ids:
            raise ReplayError(f"topic {record.name} exists already")
        ids[record.name] = record.topic_id
        by_id[record.topic_id] = TopicImage(record.name, record.topic_id)

    def remove_topic(self, topic_id: bytes) -> str:
        """Fold a RemoveTopicRecord and return the name of the removed topic."""
        by_id, ids = self._maps()
        topic = self._topic(topic_id)
        edited = self._partitions.pop(topic_id, None)
        partitions = topic.partitions if edited is None else edited.finish()
        for _, partition in partitions.in_order():
            self._counts.remove(partition)
        del by_id[topic_id]
        del ids[topic.name]
        return topic.name

    def create_partition(self, record: PartitionRecord) -> None:
        """Fold a PartitionRecord."""
        partitions = self._partitions_of(record.topic_id)
        before = partitions.get(record.partition_id)
        if before is not None:
            self._counts.remove(before)
        self._put(partitions, record.partition_id, partition_from_record(record))

    def change_partition(self, record: PartitionChangeRecord) -> None:
        """Fold a PartitionChangeRecord."""
        partitions = self._partitions_of(record.topic_id)
        partition = partitions.get(record.partition_id)
        if partition is None:
            raise ReplayError(
                f"topic {uuid_to_text(record.topic_id)} has no partition {record.partition_id}"
            )
        self._counts.remove(partition)
        self._put(partitions, record.partition_id, merge_partition_change(partition, record))

    def clear_elr(self, record: ClearElrRecord) -> None:
        """Fold a ClearElrRecord; an empty topic name means all topics."""
        image = self.finish()
        if not record.topic_name:
            for topic in image.by_id.values():
                self._clear_elr_of(topic)
            return
        named = image.by_name(record.topic_name)
        if named is None:
            raise ReplayError(f"no topic {record.topic_name} to clear the ELR of")
        self._clear_elr_of(named)

    def _clear_elr_of(self, topic: TopicImage) -> None:
        for index, partition in topic.partitions.in_order():
            cleared = without_elr(partition)
            if cleared is not partition:
                self._counts.remove(partition)
                self._put(self._partitions_of(topic.id), index, cleared)

    def _put(
        self, partitions: PartitionsEditor, index: int, partition: PartitionRegistration
    ) -> None:
        shared = self._shared.share(partition)
        self._counts.add(shared)
        partitions.put(index, shared)

    def _maps(self) -> tuple[MapMutation[bytes, TopicImage], MapMutation[str, bytes]]:
        if self._by_id is None or self._ids is None:
            self._by_id = self._image.by_id.mutate()
            self._ids = self._image.ids.mutate()
        return self._by_id, self._ids

    def _topic(self, topic_id: bytes) -> TopicImage:
        topic = self._maps()[0].get(topic_id)
        if topic is None:
            raise ReplayError(f"no topic with id {uuid_to_text(topic_id)}")
        return topic

    def _partitions_of(self, topic_id: bytes) -> PartitionsEditor:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            partitions = self._topic(topic_id).partitions.edit()
            self._partitions[topic_id] = partitions
        return partitions
