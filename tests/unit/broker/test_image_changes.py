"""Effects of a change of the image: on coordinators, replicas, reports of directories (KIP-858)."""

import pytest
from immutables import Map

from kvorum.broker.assignments import ASSIGNMENTS_MAX, BACKOFF_MS, BACKOFF_MS_MAX, Assignments
from kvorum.broker.coordinators import NO_LEADER_EPOCH, CoordinatorChange, coordinator_elections
from kvorum.broker.local_replica_changes import PartitionInfo, local_changes
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration, Partitions
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

ID, OTHER_ID = b"a" * 16, b"b" * 16
ME, OTHER = 1, 2
LED = PartitionRegistration((ME, OTHER), (ID, ID), (ME,), leader=ME, leader_epoch=3)
FOLLOWED = LED._replace(leader=OTHER, leader_epoch=4)
MOVED_AWAY = PartitionRegistration((OTHER,), (ID,), (OTHER,), leader=OTHER, leader_epoch=5)
HERE = 1
DIRECTORY = bytes(16)
EPOCH = 7
TOPIC_ID = b"t" * 16
HERE_ID, THERE_ID = b"h" * 16, b"e" * 16


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


def topics(count: int = 3, *, replica: int = ME) -> TopicsImage:
    registration = PartitionRegistration((replica,), (bytes(16),), (replica,), leader=replica)
    topic = TopicImage("topic", TOPIC_ID, Partitions((registration,) * count))
    return TopicsImage(by_id=Map({TOPIC_ID: topic}))


def sent(request: AssignReplicasToDirsRequest | None) -> dict[tuple[bytes, int], bytes]:
    assert request is not None
    return {
        (topic.topic_id, partition.partition_index): directory.id
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    }


def answered(codes: dict[int, ErrorCode]) -> AssignReplicasToDirsResponse:
    partitions = [
        AssignReplicasToDirsResponse.PartitionData(partition_index=index, error_code=code)
        for index, code in codes.items()
    ]
    topic = AssignReplicasToDirsResponse.TopicData(topic_id=TOPIC_ID, partitions=partitions)
    directory = AssignReplicasToDirsResponse.DirectoryData(id=HERE_ID, topics=[topic])
    return AssignReplicasToDirsResponse(directories=[directory])


def reported(*indexes: int) -> Assignments:
    assignments = Assignments(ME)
    for index in indexes:
        assignments.on_assignment((TOPIC_ID, index), HERE_ID, 0)
    return assignments


def test_assignments_go_together_after_a_moment() -> None:
    assignments = reported(0)
    assignments.on_assignment((TOPIC_ID, 1), THERE_ID, 90)
    assert assignments.next_due_ms() == BACKOFF_MS
    request = assignments.due(topics(), broker_epoch=EPOCH)
    assert sent(request) == {(TOPIC_ID, 0): HERE_ID, (TOPIC_ID, 1): THERE_ID}
    assert request is not None
    assert (request.broker_id, request.broker_epoch) == (ME, EPOCH)
    assert assignments.next_due_ms() is None


def test_what_is_accepted_is_done_and_what_is_refused_is_sent_again() -> None:
    assignments = reported(0, 1, 2)
    assignments.due(topics(), broker_epoch=EPOCH)
    # Nothing is said of partition 2.
    codes = {0: ErrorCode.NONE, 1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assignments.on_response(answered(codes), 1000)
    assert assignments.next_due_ms() == 1000 + BACKOFF_MS
    again = assignments.due(topics(), broker_epoch=EPOCH)
    assert sent(again).keys() == {(TOPIC_ID, 1), (TOPIC_ID, 2)}


def test_a_newer_report_replaces_the_one_that_failed() -> None:
    assignments = reported(0)
    assignments.due(topics(), broker_epoch=EPOCH)
    assignments.on_assignment((TOPIC_ID, 0), THERE_ID, 150)
    assert assignments.next_due_ms() is None
    assignments.on_disconnected(200)
    assert sent(assignments.due(topics(), broker_epoch=EPOCH)) == {(TOPIC_ID, 0): THERE_ID}


def test_the_pauses_grow_up_to_a_limit_and_begin_again_with_an_answer() -> None:
    assignments = reported(0)
    pauses: list[float] = []
    for _ in range(9):
        assignments.due(topics(), broker_epoch=EPOCH)
        assignments.on_response(AssignReplicasToDirsResponse(error_code=41), 0)
        pauses.append(assignments.next_due_ms() or 0)
    assert pauses == [100, 200, 400, 800, 1600, 3200, 6400, BACKOFF_MS_MAX, BACKOFF_MS_MAX]
    assignments.due(topics(), broker_epoch=EPOCH)
    assignments.on_response(answered({}), 0)
    assert assignments.next_due_ms() == BACKOFF_MS


def test_a_replica_that_is_gone_is_forgotten() -> None:
    for image in (TopicsImage(), topics(0), topics(replica=OTHER)):
        assignments = reported(0)
        assert assignments.due(image, broker_epoch=EPOCH) is None
        assert assignments.next_due_ms() is None


def test_a_request_has_at_most_so_many() -> None:
    assignments = reported(*range(ASSIGNMENTS_MAX + 1))
    image = topics(ASSIGNMENTS_MAX + 1)
    assert len(sent(assignments.due(image, broker_epoch=EPOCH))) == ASSIGNMENTS_MAX
    assignments.on_response(answered(dict.fromkeys(range(ASSIGNMENTS_MAX), ErrorCode.NONE)), 0)
    assert len(sent(assignments.due(image, broker_epoch=EPOCH))) == 1
