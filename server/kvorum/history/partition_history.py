"""The open intervals of all partitions, and the rows of those that end.

Each partition is kept once, with the registration that is in force and the begin of its interval.
The fold itself is `kvorum.metadata`'s: this class gets the registration after each change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from kvorum.history.intervals import Begin, End, IntervalEnd, Position, begin_at, end_at
from kvorum.history.leader_change_causes import LeaderChanges, PartitionName
from kvorum.history.tables import AvailabilityRow, Condition, LeaderChangeRow, PartitionTimelineRow
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.configs_image import (
    CLUSTER_RESOURCE,
    ConfigResource,
    ConfigsImage,
    ResourceType,
)
from kvorum.metadata.effective_configs import (
    MIN_INSYNC_REPLICAS,
    BrokerConfigLayers,
    effective_topic_config,
    whole_number,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

PartitionHistoryRow: TypeAlias = PartitionTimelineRow | LeaderChangeRow | AvailabilityRow

CONDITIONS: Final = tuple(Condition)
"""A tuple: to go through the members of an enumeration takes several times as long."""
DIRECTORY_LISTS_MAX: Final = 16_384
"""The number of lists of directories whose text is kept: partitions have few distinct ones."""

AVAILABLE: Final[tuple[Condition, ...]] = ()
"""The conditions of a partition that lacks nothing."""


class OpenPartition:
    """A partition with the begin of its interval, and of each condition that it is in."""

    __slots__ = ("begin", "conditions", "registration")

    def __init__(self, registration: PartitionRegistration, begin: Begin) -> None:
        self.registration = registration
        self.begin = begin
        # None for the many that are fully available: an empty dict each would cost memory.
        self.conditions: dict[Condition, Begin] | None = None


class OpenTopic:
    """A topic with its partitions by index; `min_insync_replicas` is its effective value."""

    __slots__ = ("id", "id_text", "min_insync_replicas", "name", "partitions")

    def __init__(self, topic_id: bytes, name: str, min_insync_replicas: int) -> None:
        self.id = topic_id
        self.id_text = uuid_to_text(topic_id)
        self.name = name
        self.min_insync_replicas = min_insync_replicas
        self.partitions: dict[int, OpenPartition] = {}

    def name_of(self, index: int) -> PartitionName:
        """Return the name of a partition as rows contain it."""
        return PartitionName(self.name, self.id_text, index)


class PartitionHistory:
    """The history of all partitions up to the record that was handed in last."""

    def __init__(self) -> None:
        self.leader_changes = LeaderChanges()
        self._topics: dict[bytes, OpenTopic] = {}
        self._ids: dict[str, bytes] = {}
        self._directory_texts: dict[tuple[bytes, ...], tuple[str, ...]] = {}

    def open_topic(self, topic_id: bytes, name: str, configs: ConfigsImage) -> None:
        """Add a topic without partitions."""
        if topic_id not in self._topics:
            self._topics[topic_id] = OpenTopic(topic_id, name, min_insync_replicas(configs, name))
            self._ids[name] = topic_id

    def close_topic(self, topic_id: bytes, position: Position) -> Iterator[PartitionHistoryRow]:
        """Remove a topic, and yield the rows of its partitions."""
        topic = self._topics.pop(topic_id)
        del self._ids[topic.name]
        end = end_at(position, IntervalEnd.TOPIC_DELETED)
        for index, partition in topic.partitions.items():
            yield self._timeline_row(topic, index, partition, end)
            yield from _availability_rows(topic, index, partition, end)

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of a topic, None without one."""
        topic = self._topics.get(topic_id)
        return None if topic is None else topic.name

    def partitions_of(self, topic_name: str) -> list[tuple[bytes, int]]:
        """Return topic id and index of each partition of a topic, of all topics for ""."""
        if topic_name:
            topic_ids = [self._ids[topic_name]] if topic_name in self._ids else []
        else:
            topic_ids = list(self._topics)
        return [(id_, index) for id_ in topic_ids for index in self._topics[id_].partitions]

    def change(
        self,
        topic_id: bytes,
        index: int,
        after: PartitionRegistration,
        *,
        cluster: ClusterImage,
        position: Position,
    ) -> list[PartitionHistoryRow]:
        """Return the rows that end with a partition's change to `after`."""
        topic = self._topics[topic_id]
        partition = topic.partitions.get(index)
        if partition is None:
            return list(self._open_partition(topic, index, after, position))
        before = partition.registration
        if before is after or before == after:
            return []
        # A list, not a generator: this is done for almost every record of a log.
        end = end_at(position, IntervalEnd.CHANGED)
        rows: list[PartitionHistoryRow] = [self._timeline_row(topic, index, partition, end)]
        if before.leader != after.leader:
            rows += self.leader_changes.changed(
                topic.name_of(index), before, after, cluster=cluster, position=position
            )
        partition.registration = after
        partition.begin = begin_at(position)
        rows += _conditions_changed(topic, index, partition, position)
        return rows

    def config_changed(
        self,
        resource: ConfigResource,
        before: ConfigsImage,
        after: ConfigsImage,
        position: Position,
    ) -> Iterator[AvailabilityRow]:
        """Yield the conditions that end when the values of `resource` change."""
        old = before.of(*resource).get(MIN_INSYNC_REPLICAS)
        if after.of(*resource).get(MIN_INSYNC_REPLICAS) == old:
            return
        for topic in self._topics_affected(resource):
            effective = min_insync_replicas(after, topic.name)
            if effective == topic.min_insync_replicas:
                continue
            topic.min_insync_replicas = effective
            for index, partition in topic.partitions.items():
                yield from _conditions_changed(topic, index, partition, position)

    def open_rows(self, end: End) -> Iterator[PartitionHistoryRow]:
        """Yield a row for each open interval."""
        for topic in self._topics.values():
            for index, partition in topic.partitions.items():
                yield self._timeline_row(topic, index, partition, end)
                yield from _availability_rows(topic, index, partition, end)
        yield from self.leader_changes.open_rows()

    def to_saved(self) -> dict[str, Any]:
        """Return the open intervals for `from_saved`, without the registrations."""
        return {
            "leader_changes": self.leader_changes.to_saved(),
            "topics": [
                [
                    topic.id_text,
                    [
                        [index, partition.begin, partition.conditions or {}]
                        for index, partition in topic.partitions.items()
                    ],
                ]
                for topic in self._topics.values()
            ],
        }

    @classmethod
    def from_saved(cls, saved: dict[str, Any], image: MetadataImage) -> PartitionHistory:
        """Return the history that `to_saved` wrote, with the registrations of the image."""
        history = cls()
        history.leader_changes = LeaderChanges.from_saved(saved["leader_changes"])
        for id_text, partitions in saved["topics"]:
            topic_id = uuid_from_text(id_text)
            topic = image.topics.by_id[topic_id]
            history.open_topic(topic_id, topic.name, image.configs)
            opened = history._topics[topic_id].partitions
            for index, begin, conditions in partitions:
                partition = OpenPartition(topic.partitions[index], Begin(*begin))
                if conditions:
                    partition.conditions = {
                        Condition(name): Begin(*each) for name, each in conditions.items()
                    }
                opened[index] = partition
        return history

    def _open_partition(
        self, topic: OpenTopic, index: int, after: PartitionRegistration, position: Position
    ) -> Iterator[PartitionHistoryRow]:
        partition = OpenPartition(after, begin_at(position))
        topic.partitions[index] = partition
        if not position.is_snapshot:
            yield self.leader_changes.created(topic.name_of(index), after, position)
        yield from _conditions_changed(topic, index, partition, position)

    def _topics_affected(self, resource: ConfigResource) -> list[OpenTopic]:
        """Return the topics whose effective values may change with those of `resource`."""
        if resource == CLUSTER_RESOURCE:
            return list(self._topics.values())
        topic_id = self._ids.get(resource[1]) if resource[0] == ResourceType.TOPIC else None
        return [] if topic_id is None else [self._topics[topic_id]]

    def _timeline_row(
        self, topic: OpenTopic, index: int, partition: OpenPartition, end: End
    ) -> PartitionTimelineRow:
        state, begin = partition.registration, partition.begin
        # Arguments by position are faster: there is a row for almost every record of a log.
        return PartitionTimelineRow(
            topic.name,
            topic.id_text,
            index,
            begin.offset,
            begin.timestamp_ms,
            begin.begins_earlier,
            end.offset,
            end.timestamp_ms,
            end.reason,
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            state.leader_recovery_state,
            state.isr,
            state.elr,
            state.last_known_elr,
            state.replicas,
            state.adding_replicas,
            state.removing_replicas,
            self._texts_of(state.directories),
        )

    def _texts_of(self, directories: tuple[bytes, ...]) -> tuple[str, ...]:
        texts = self._directory_texts.get(directories)
        if texts is None:
            if len(self._directory_texts) >= DIRECTORY_LISTS_MAX:
                self._directory_texts.clear()
            texts = tuple(uuid_to_text(directory) for directory in directories)
            self._directory_texts[directories] = texts
        return texts


def _conditions_changed(
    topic: OpenTopic, index: int, partition: OpenPartition, position: Position
) -> Iterable[AvailabilityRow]:
    """Return the conditions that end at `position`, and open those that begin there."""
    found = conditions_of(partition.registration, topic.min_insync_replicas)
    begins = partition.conditions
    if begins is None:
        if found is not AVAILABLE:
            partition.conditions = dict.fromkeys(found, begin_at(position))
        return ()
    ended = [
        (each, begins.pop(each)) for each in CONDITIONS if each in begins and each not in found
    ]
    for condition in found:
        if condition not in begins:
            begins[condition] = begin_at(position)
    if not ended:
        return ()
    end = end_at(position, IntervalEnd.CHANGED)
    if not begins:
        partition.conditions = None
    return [
        _availability_row(topic, index, condition, begin, end)
        for condition, begin in ended
        # Records of one transaction have one position, so a condition may come and go there.
        if begin.offset != position.offset
    ]


def _availability_rows(
    topic: OpenTopic, index: int, partition: OpenPartition, end: End
) -> Iterator[AvailabilityRow]:
    for condition, begin in (partition.conditions or {}).items():
        yield _availability_row(topic, index, condition, begin, end)


def _availability_row(
    topic: OpenTopic, index: int, condition: Condition, begin: Begin, end: End
) -> AvailabilityRow:
    return AvailabilityRow(
        topic_name=topic.name,
        topic_id=topic.id_text,
        partition_id=index,
        condition=condition,
        from_offset=begin.offset,
        from_time=begin.timestamp_ms,
        begins_earlier=begin.begins_earlier,
        to_offset=end.offset,
        to_time=end.timestamp_ms,
        duration_ms=end.observed_ms - begin.timestamp_ms,
        end_reason=end.reason,
    )


def conditions_of(
    partition: PartitionRegistration, min_insync_replicas: int
) -> tuple[Condition, ...]:
    """Return the conditions in which `partition` is, none where it is fully available.

    Kafka's rules: replicas that are being added are not counted as missing, and the minimal ISR is
    limited to the number of replicas.
    """
    in_sync = len(partition.isr)
    replicas = len(partition.replicas)
    is_under_replicated = in_sync < replicas - len(partition.adding_replicas)
    is_under_min_isr = in_sync < min_insync_replicas and in_sync < replicas
    if partition.leader != NO_LEADER and not is_under_replicated and not is_under_min_isr:
        return AVAILABLE
    found: list[Condition] = []
    if partition.leader == NO_LEADER:
        found.append(Condition.OFFLINE)
    if is_under_replicated:
        found.append(Condition.UNDER_REPLICATED)
    if is_under_min_isr:
        found.append(Condition.UNDER_MIN_ISR)
    return tuple(found)


def min_insync_replicas(configs: ConfigsImage, topic_name: str) -> int:
    """Return min.insync.replicas of a topic as far as the log has it.

    It is the topic's own value, else the cluster's dynamic default, else Kafka's default of 1. A
    value in the brokers' properties files is not in the log.
    """
    config = effective_topic_config(
        MIN_INSYNC_REPLICAS,
        configs.of_topic(topic_name),
        BrokerConfigLayers(cluster=configs.of_cluster()),
    )
    return whole_number(config)
