"""The effect of a change of the image on the coordinators and the replicas of a broker."""

import pytest
from immutables import Map

from kvorum.broker.coordinators import (
    NO_LEADER_EPOCH,
    CoordinatorChange,
    coordinator_elections,
    deleted_topics,
)
from kvorum.broker.local_replica_changes import PartitionInfo, local_changes
from kvorum.groups.coordinator_partition import GROUP_METADATA_TOPIC, coordinator_partition
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration, Partitions
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.storage.topic_partition import TopicPartition

ID, OTHER_ID = b"a" * 16, b"b" * 16
ME, OTHER = 1, 2
LED = PartitionRegistration((ME, OTHER), (ID, ID), (ME,), leader=ME, leader_epoch=3)
FOLLOWED = LED._replace(leader=OTHER, leader_epoch=4)
MOVED_AWAY = PartitionRegistration((OTHER,), (ID,), (OTHER,), leader=OTHER, leader_epoch=5)
HERE = 1
DIRECTORY = bytes(16)


def image(*partitions: PartitionRegistration, topic_id: bytes = ID) -> TopicsImage:
    topic = TopicImage(GROUP_METADATA_TOPIC, topic_id, Partitions(partitions))
    return TopicsImage(Map({topic_id: topic}), Map({topic.name: topic_id}))


Changes = tuple[tuple[CoordinatorChange, ...], tuple[CoordinatorChange, ...]]


def changes(before: TopicsImage, after: TopicsImage) -> Changes:
    found = coordinator_elections(before, after, GROUP_METADATA_TOPIC, ME)
    return tuple(found.elected), tuple(found.resigned)


def test_a_new_topic_is_led_where_this_broker_leads() -> None:
    elected, resigned = changes(TopicsImage(), image(LED, FOLLOWED, MOVED_AWAY))
    assert elected == (CoordinatorChange(ID, 0, 3),)
    assert resigned == (CoordinatorChange(ID, 1, 4),)


def test_equal_values_are_not_a_change() -> None:
    before = image(LED, FOLLOWED)
    assert changes(before, before) == ((), ())
    topic = before.by_id[ID]
    same = topic._replace(partitions=Partitions(tuple(one for _, one in topic.sorted_partitions())))
    assert changes(before, TopicsImage(Map({ID: same}), before.ids)) == ((), ())


@pytest.mark.parametrize(
    ("after", "epoch"), [(FOLLOWED, 4), (MOVED_AWAY, NO_LEADER_EPOCH)], ids=["follows", "is gone"]
)
def test_a_leader_that_leads_no_more_resigns(after: PartitionRegistration, epoch: int) -> None:
    assert changes(image(LED), image(after)) == ((), (CoordinatorChange(ID, 0, epoch),))


def test_a_topic_that_is_made_again_is_another_one() -> None:
    before, after = image(LED), image(LED, topic_id=OTHER_ID)
    elected, resigned = changes(before, after)
    assert elected == (CoordinatorChange(OTHER_ID, 0, 3),)
    assert resigned == (CoordinatorChange(ID, 0, NO_LEADER_EPOCH),)
    assert [topic.id for topic in deleted_topics(before, after)] == [ID]
    assert deleted_topics(after, after) == []


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("test", 48),
        ("my-group", 12),
        ("console-consumer-12345", 6),
        ("polygenelubricants", 0),
        ("grp-é", 47),
        ("a" * 300, 14),
    ],
)
def test_groups_are_spread_by_javas_hash(group: str, partition: int) -> None:
    assert coordinator_partition(group, 50) == partition


def info(
    leader: int, isr: tuple[int, ...], elr: tuple[int, ...] = (), last: tuple[int, ...] = ()
) -> PartitionInfo:
    registration = PartitionRegistration(
        (1, 2, 3), (DIRECTORY,) * 3, isr, leader=leader, elr=elr, last_known_elr=last
    )
    return PartitionInfo(TopicPartition("topic", 0), bytes(16), registration)


def test_a_replica_outside_of_isr_and_elr_may_be_fetched_again() -> None:
    assert info(2, (2, 3)).is_fetchable(HERE)
    assert info(2, (2,), elr=(3,)).is_fetchable(HERE)


@pytest.mark.parametrize(
    "partition",
    [
        info(1, (1,)),
        info(2, (1, 2)),
        info(2, (2,), elr=(1,)),
        info(NO_LEADER, (), last=(1,)),
        info(NO_LEADER, (2,)),
        info(NO_LEADER, (1,)),
    ],
)
def test_a_replica_that_may_lead_or_has_no_leader_may_not_be_fetched_again(
    partition: PartitionInfo,
) -> None:
    assert not partition.is_fetchable(HERE)


def test_partitions_are_named_again_though_nothing_has_changed() -> None:
    led, followed = info(1, (1,)).registration, info(2, (1, 2)).registration
    topic = TopicImage("topic", DIRECTORY, Partitions((led, led, followed)))
    image = TopicsImage(Map({DIRECTORY: topic}), Map({"topic": DIRECTORY}))
    assert local_changes(image, image, HERE).leaders == []
    gone = bytes(range(16))
    found = local_changes(image, image, HERE, again={(DIRECTORY, 1), (DIRECTORY, 2), (gone, 0)})
    assert [one.key for one in found.leaders] == [(DIRECTORY, 1)]
    assert [one.key for one in found.followers] == [(DIRECTORY, 2)]
    assert found.deletes == []
