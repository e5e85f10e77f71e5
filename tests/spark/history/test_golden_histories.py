"""The history of logs that real Kafka wrote, against images folded to every offset of their own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest
from tests.support.golden_data import METADATA_NODES
from tests.support.spark.small_logs import (
    begun_history,
    directory_records,
    file_records,
    snapshot_files,
)

from kvorum.history import HistoryRow, LogRecord, MetadataHistory, StateRow
from kvorum.history.tables import (
    AclRow,
    AvailabilityRow,
    BrokerRow,
    BrokerSessionRow,
    BrokerStateRow,
    ConfigRow,
    FeatureRow,
    LeaderChangeRow,
    PartitionRow,
    PartitionTimelineRow,
    QuotaRow,
    TopicRow,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.wire.uuid_text import uuid_to_text

Row = TypeVar("Row")
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Folded:
    records: list[LogRecord]
    history: MetadataHistory
    rows: list[HistoryRow]
    images: dict[int, MetadataImage]

    def of(self, row_type: type[Row]) -> list[Row]:
        return of(row_type, self.rows)

    @property
    def first(self) -> int:
        return min(self.images)


def begin(directory: Path, first_offset: int) -> tuple[MetadataHistory, MetadataImage, int]:
    """Return a history and an image to begin with, and the next offset."""
    if first_offset == 0:
        return MetadataHistory(), MetadataImage(), 0
    history = begun_history(directory, first_offset)
    end, _, file = next(each for each in snapshot_files(directory) if each[0] >= first_offset)
    image = MetadataImage().apply_all(
        (record.message, record.version, end - 1)
        for record in file_records(file)
        if record.message.API_KEY is not None
    )
    return history, image, end


@pytest.fixture(scope="module", params=METADATA_NODES)
def folded(golden_sets: Path, request: pytest.FixtureRequest) -> Folded:
    directory = golden_sets / str(request.param) / "__cluster_metadata-0"
    records = directory_records(directory)
    history, image, offset = begin(directory, records[0].offset)
    images = {offset - 1: image}
    for record in records:
        if record.offset < offset:
            continue
        if record.message.API_KEY is not None:
            image = image.apply(record.message, record.version, record.offset)
        images[record.offset] = image.published
    return Folded(records, history, [*history.add_all(records), *history.open_rows()], images)


def intervals(
    images: Mapping[int, MetadataImage],
    states: Callable[[MetadataImage], Iterable[tuple[Key, Value]]],
) -> set[tuple[Key, Value, int, int | None]]:
    """Return each key's state from offset to offset, found by looking at every image."""
    found: set[tuple[Key, Value, int, int | None]] = set()
    current: dict[Key, tuple[Value, int]] = {}
    before: MetadataImage | None = None
    for offset, image in images.items():
        if before is not None and _is_same(image, before):
            continue
        before = image
        state = dict(states(image))
        for key, (value, start) in [*current.items()]:
            if key not in state or state[key] != value:
                found.add((key, value, start, offset))
                del current[key]
        for key, value in state.items():
            current.setdefault(key, (value, offset))
    return found | {(key, value, start, None) for key, (value, start) in current.items()}


def _is_same(image: MetadataImage, before: MetadataImage) -> bool:
    """Whether topics, brokers and configurations are those of another image."""
    return (
        image.topics is before.topics
        and image.cluster is before.cluster
        and image.configs is before.configs
    )


PartitionKey = tuple[str, str, int]


def partitions_in(image: MetadataImage) -> Iterable[tuple[PartitionKey, PartitionRegistration]]:
    for topic in image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            yield (topic.name, uuid_to_text(topic.id), index), partition


def registration(row: PartitionTimelineRow, like: PartitionRegistration) -> PartitionRegistration:
    """The state in a row; the directories are compared as text, and taken over where equal."""
    assert row.directories == tuple(map(uuid_to_text, like.directories))
    return PartitionRegistration(
        replicas=row.replicas,
        directories=like.directories,
        isr=row.isr,
        removing_replicas=row.removing_replicas,
        adding_replicas=row.adding_replicas,
        leader=row.leader,
        leader_recovery_state=row.leader_recovery_state,
        leader_epoch=row.leader_epoch,
        partition_epoch=row.partition_epoch,
        elr=row.eligible_leader_replicas,
        last_known_elr=row.last_known_elr,
    )


def test_the_timeline_is_that_of_the_images(folded: Folded) -> None:
    found: set[tuple[PartitionKey, PartitionRegistration, int, int | None]] = set()
    for row in folded.of(PartitionTimelineRow):
        key = (row.topic_name, row.topic_id, row.partition_id)
        topic = folded.images[row.from_offset].topics.by_name(row.topic_name)
        assert topic is not None
        like = topic.partitions[row.partition_id]
        found.add((key, registration(row, like), row.from_offset, row.to_offset))
    assert found == intervals(folded.images, partitions_in)
    assert len(found) == len(folded.of(PartitionTimelineRow))


def test_the_intervals_of_a_partition_have_no_gaps(folded: Folded) -> None:
    of_partition: dict[PartitionKey, list[PartitionTimelineRow]] = defaultdict(list)
    for row in folded.of(PartitionTimelineRow):
        of_partition[row.topic_name, row.topic_id, row.partition_id].append(row)
    for rows in of_partition.values():
        for row, following in pairwise(rows):
            assert (row.to_offset, row.to_time) == (following.from_offset, following.from_time)
            assert row.end_reason == "changed"
        assert rows[-1].end_reason in {"topic_deleted", "log_end"}
        is_from_snapshot = rows[0].from_offset == folded.first
        assert [row.begins_earlier for row in rows] == [is_from_snapshot, *[False] * len(rows[1:])]


def test_times_are_those_of_the_records(folded: Folded) -> None:
    times = {record.offset: record.timestamp_ms for record in folded.records}
    for row in folded.of(PartitionTimelineRow):
        if not row.begins_earlier:
            assert row.from_time == times[row.from_offset]
        assert row.to_time == (None if row.to_offset is None else times[row.to_offset])


def conditions_in(image: MetadataImage) -> Iterable[tuple[tuple[PartitionKey, str], None]]:
    for key, partition in partitions_in(image):
        own, cluster = (
            values.get("min.insync.replicas")
            for values in (image.configs.of_topic(key[0]), image.configs.of_cluster())
        )
        minimum = min(int(own or cluster or 1), len(partition.replicas))
        wanted = set(partition.replicas) - set(partition.adding_replicas)
        if partition.leader == -1:
            yield (key, "offline"), None
        if len(partition.isr) < len(wanted):
            yield (key, "under_replicated"), None
        if len(partition.isr) < minimum:
            yield (key, "under_min_isr"), None


def test_availability_is_that_of_the_images(folded: Folded) -> None:
    last = folded.records[-1].timestamp_ms
    found: set[tuple[tuple[PartitionKey, str], None, int, int | None]] = set()
    for row in folded.of(AvailabilityRow):
        key = (row.topic_name, row.topic_id, row.partition_id)
        found.add(((key, str(row.condition)), None, row.from_offset, row.to_offset))
        assert row.duration_ms == (last if row.to_time is None else row.to_time) - row.from_time
    assert found == intervals(folded.images, conditions_in)
    assert len(found) == len(folded.of(AvailabilityRow))


def leaders_in(image: MetadataImage) -> Iterable[tuple[PartitionKey, int]]:
    return ((key, partition.leader) for key, partition in partitions_in(image))


def test_leader_changes_are_those_of_the_images(folded: Folded) -> None:
    found = {
        ((row.topic_name, row.topic_id, row.partition_id), row.new_leader, row.offset)
        for row in folded.of(LeaderChangeRow)
    }
    assert found == {
        (key, leader, start)
        for key, leader, start, _ in intervals(folded.images, leaders_in)
        if start != folded.first or folded.first == 0
    }
    assert len(found) == len(folded.of(LeaderChangeRow))


def states_in(image: MetadataImage) -> Iterable[tuple[tuple[int, str], str]]:
    for broker in image.cluster.sorted_brokers():
        state = "controlled_shutdown" if broker.is_in_controlled_shutdown else "unfenced"
        key = (broker.id, uuid_to_text(broker.incarnation_id))
        yield key, "fenced" if broker.is_fenced else state


def test_states_of_brokers_are_those_of_the_images(folded: Folded) -> None:
    found = {
        ((row.broker_id, row.incarnation_id), str(row.state), row.from_offset, row.to_offset)
        for row in folded.of(BrokerStateRow)
    }
    assert found == intervals(folded.images, states_in)


def incarnations_in(image: MetadataImage) -> Iterable[tuple[int, str]]:
    for broker in image.cluster.sorted_brokers():
        yield broker.id, uuid_to_text(broker.incarnation_id)


def test_sessions_of_brokers_are_those_of_the_images(folded: Folded) -> None:
    sessions = folded.of(BrokerSessionRow)
    assert {
        (row.broker_id, row.incarnation_id, row.from_offset, row.to_offset) for row in sessions
    } == intervals(folded.images, incarnations_in)
    for row in sessions:
        end = max(folded.images) if row.to_offset is None else row.to_offset - 1
        broker = folded.images[end].cluster.brokers[row.broker_id]
        assert (row.broker_epoch, row.rack, len(row.endpoints)) == (
            broker.epoch, broker.rack, len(broker.listeners),
        )  # fmt: skip
        assert row.log_dirs == tuple(map(uuid_to_text, broker.directories))
        states = [
            each for each in folded.of(BrokerStateRow) if each.incarnation_id == row.incarnation_id
        ]
        check_events(row, states)


def check_events(session: BrokerSessionRow, states: list[BrokerStateRow]) -> None:
    """Compare the events of a session with the intervals of its states."""
    known = [row for row in states if not row.begins_earlier]
    unfenced = [row.from_offset for row in known if row.state == "unfenced"]
    shutdowns = [row.from_offset for row in known if row.state == "controlled_shutdown"]
    fenced = [
        row.from_offset
        for row in known
        if row.state == "fenced" and row.from_offset != session.from_offset
    ]
    assert session.first_unfenced_offset == (unfenced[0] if unfenced else None)
    assert session.controlled_shutdown_offset == (shutdowns[0] if shutdowns else None)
    assert session.last_fenced_offset == (fenced[-1] if fenced else None)
    assert session.fenced_count == len(fenced)


def test_the_state_at_the_end_is_that_of_the_image(folded: Folded) -> None:
    image = folded.images[max(folded.images)]
    state = list(folded.history.end_state())
    assert of(TopicRow, state) == [
        TopicRow(topic.name, uuid_to_text(topic.id), len(topic.partitions))
        for topic in image.topics.sorted_topics()
    ]
    assert of(PartitionRow, state) == [
        (
            topic.name, uuid_to_text(topic.id), index, each.replicas, each.isr,
            each.removing_replicas, each.adding_replicas, each.leader, each.leader_epoch,
            each.partition_epoch, each.leader_recovery_state,
            tuple(map(uuid_to_text, each.directories)), each.elr, each.last_known_elr,
        )
        for topic in image.topics.sorted_topics()
        for index, each in topic.sorted_partitions()
    ]  # fmt: skip
    assert {
        (row.resource_type, row.resource_name, row.name, row.value) for row in of(ConfigRow, state)
    } == {
        ({2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}[kind], name, key, value)
        for (kind, name), values in image.configs.resources.items()
        for key, value in values.items()
    }
    assert {row.acl_id for row in of(AclRow, state)} == set(map(uuid_to_text, image.acls.entries))
    assert {tuple(row) for row in of(QuotaRow, state)} == {
        (entity, key, value)
        for entity, values in image.client_quotas.entities.items()
        for key, value in values.items()
    }
    assert [tuple(row) for row in of(FeatureRow, state)] == list(
        image.features.all_levels().items()
    )
    assert [row.broker_id for row in of(BrokerRow, state)] == sorted(image.cluster.brokers)


def of(row_type: type[Row], rows: Iterable[HistoryRow | StateRow]) -> list[Row]:
    return [row for row in rows if isinstance(row, row_type)]
