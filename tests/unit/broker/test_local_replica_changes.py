"""The next steps of a broker's replicas, and which of them may begin with an empty log."""

import pytest
from immutables import Map

from kvorum.broker.local_replica_changes import PartitionInfo, local_changes
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration
from kvorum.metadata.partitions import Partitions
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.storage.topic_partition import TopicPartition

HERE = 1
DIRECTORY = bytes(16)


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
