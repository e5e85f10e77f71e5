"""Directories of replicas are reported until the controller accepts them (KIP-858)."""

from immutables import Map

from kvorum.broker.assignments import ASSIGNMENTS_MAX, BACKOFF_MS, BACKOFF_MS_MAX, Assignments
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

ME, EPOCH, OTHER = 1, 7, 2
TOPIC_ID = b"t" * 16
HERE, THERE = b"h" * 16, b"e" * 16


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
    directory = AssignReplicasToDirsResponse.DirectoryData(id=HERE, topics=[topic])
    return AssignReplicasToDirsResponse(directories=[directory])


def reported(*indexes: int) -> Assignments:
    assignments = Assignments(ME)
    for index in indexes:
        assignments.on_assignment((TOPIC_ID, index), HERE, 0)
    return assignments


def test_assignments_go_together_after_a_moment() -> None:
    assignments = reported(0)
    assignments.on_assignment((TOPIC_ID, 1), THERE, 90)
    assert assignments.next_due_ms() == BACKOFF_MS
    request = assignments.due(topics(), broker_epoch=EPOCH)
    assert sent(request) == {(TOPIC_ID, 0): HERE, (TOPIC_ID, 1): THERE}
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
    assignments.on_assignment((TOPIC_ID, 0), THERE, 150)
    assert assignments.next_due_ms() is None
    assignments.on_disconnected(200)
    assert sent(assignments.due(topics(), broker_epoch=EPOCH)) == {(TOPIC_ID, 0): THERE}


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
