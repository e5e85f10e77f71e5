"""ElectLeaders, reassignments, AlterPartition, AssignReplicasToDirs and the periodic elections."""

from dataclasses import replace

import pytest
from tests.support.controller_under_test import ControllerUnderTest, directory_of, started_cluster

from kvorum.controller.api import at_once
from kvorum.controller.periodic_tasks import (
    maybe_balance_partition_leaders,
    maybe_elect_unclean_leaders,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def controller() -> ControllerUnderTest:
    """Four brokers, and the topic t with one partition on brokers 1, 2 and 3."""
    cluster = started_cluster(brokers=4)
    cluster.create_topic("t", assignments=[[1, 2, 3]])
    return cluster


def elect(
    controller: ControllerUnderTest,
    election_type: int,
    *wanted: tuple[str, int],
    every: bool = False,
) -> list[tuple[str, int, int, str | None]]:
    topics = [ElectLeadersRequest.TopicPartitions(name, [index]) for name, index in wanted]
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=None if every else topics
    )
    response = controller.answer(ElectLeadersResponse, request)
    assert response.error_code == 0
    return [
        (topic.topic, result.partition_id, result.error_code, result.error_message)
        for topic in response.replica_election_results
        for result in topic.partition_result
    ]


def test_the_preferred_leader_is_elected_again(controller: ControllerUnderTest) -> None:
    controller.heartbeat(1, want_fence=True)
    assert controller.partition("t").leader == 2
    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert elect(controller, PREFERRED, ("t", 0)) == [("t", 0, code, code.default_message)]
    controller.heartbeat(1)
    alter_isr(controller, 2, [1, 2, 3])
    assert elect(controller, PREFERRED, ("t", 0)) == [("t", 0, 0, None)]
    assert controller.partition("t").leader == 1


def test_elections_that_are_refused(controller: ControllerUnderTest) -> None:
    assert elect(controller, PREFERRED, ("t", 0), ("t", 1), ("no", 0)) == [
        ("t", 0, 84, ErrorCode.ELECTION_NOT_NEEDED.default_message),
        ("t", 1, 3, "No such partition as t-1"),
        ("no", 0, 3, "No such topic as no"),
    ]
    assert elect(controller, UNCLEAN, ("t", 0)) == [
        ("t", 0, 84, ErrorCode.ELECTION_NOT_NEEDED.default_message)
    ]
    assert elect(controller, PREFERRED, every=True) == []
    assert controller.last_records == ()


def test_an_election_type_that_does_not_exist(controller: ControllerUnderTest) -> None:
    request = ElectLeadersRequest(
        election_type=2, topic_partitions=[ElectLeadersRequest.TopicPartitions("t", [0])]
    )
    response = controller.answer(ElectLeadersResponse, request)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    (topic,) = response.replica_election_results
    assert [(r.error_code, r.error_message) for r in topic.partition_result] == [
        (42, "Unknown election type 2")
    ]


def test_an_unclean_election(controller: ControllerUnderTest) -> None:
    for broker_id in (3, 2, 1):
        controller.heartbeat(broker_id, want_fence=True)
    assert controller.partition("t").leader == -1
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert elect(controller, UNCLEAN, ("t", 0)) == [("t", 0, code, code.default_message)]
    controller.heartbeat(3)
    assert controller.partition("t").leader == -1
    assert elect(controller, UNCLEAN, ("t", 0)) == [("t", 0, 0, None)]
    assert (controller.partition("t").leader, controller.partition("t").isr) == (3, (3,))
    assert controller.partition("t").leader_recovery_state == 1


def alter_isr(
    controller: ControllerUnderTest,
    broker_id: int,
    isr: list[int],
    *,
    api_version: int = 3,
    **changes: int,
) -> tuple[int, int]:
    """Ask for an ISR; return the top-level error code and that of the partition."""
    current = controller.partition("t")
    data = AlterPartitionRequest.PartitionData(
        partition_index=changes.get("index", 0),
        leader_epoch=current.leader_epoch + changes.get("leader_epoch_change", 0),
        partition_epoch=current.partition_epoch + changes.get("partition_epoch_change", 0),
        leader_recovery_state=changes.get("recovery", 0),
    )
    if api_version < 3:
        data.new_isr = isr
    else:
        data.new_isr_with_epochs = [
            AlterPartitionRequest.BrokerState(member, changes.get("member_epoch", -1))
            for member in isr
        ]
    broker = controller.image.cluster.brokers.get(broker_id)
    epoch = (broker.epoch if broker else 0) + changes.get("broker_epoch_change", 0)
    wanted = AlterPartitionRequest.TopicData(controller.image.topics.ids["t"], [data])
    if "unknown_topic" in changes:
        wanted.topic_id = b"u" * 16
    response = controller.answer(
        AlterPartitionResponse, AlterPartitionRequest(broker_id, epoch, [wanted]), api_version
    )
    partitions = [p.error_code for topic in response.topics for p in topic.partitions]
    return response.error_code, partitions[0] if partitions else 0


@pytest.mark.parametrize("api_version", [2, 3])
def test_the_leader_shrinks_and_grows_the_isr(
    controller: ControllerUnderTest, api_version: int
) -> None:
    assert alter_isr(controller, 1, [1, 2], api_version=api_version) == (0, 0)
    assert controller.partition("t").isr == (1, 2)
    assert alter_isr(controller, 1, [1, 2, 3], api_version=api_version) == (0, 0)
    assert controller.partition("t").isr == (1, 2, 3)
    assert alter_isr(controller, 1, [1, 2, 3], api_version=api_version) == (0, 0)
    assert controller.last_records == ()


@pytest.mark.parametrize(
    ("code", "broker_id", "isr", "changes"),
    [
        (ErrorCode.UNKNOWN_TOPIC_ID, 1, [1, 2], {"unknown_topic": 1}),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 1, [1, 2], {"index": 7}),
        (ErrorCode.NOT_CONTROLLER, 1, [1, 2], {"leader_epoch_change": 1}),
        (ErrorCode.NOT_CONTROLLER, 1, [1, 2], {"partition_epoch_change": 1}),
        (ErrorCode.FENCED_LEADER_EPOCH, 1, [1, 2], {"leader_epoch_change": -1}),
        (ErrorCode.INVALID_UPDATE_VERSION, 1, [1, 2], {"partition_epoch_change": -1}),
        (ErrorCode.INELIGIBLE_REPLICA, 1, [1, 2], {"member_epoch": 999}),
        (ErrorCode.INVALID_REQUEST, 2, [1, 2], {}),
        (ErrorCode.INVALID_REQUEST, 1, [1, 4], {}),
        (ErrorCode.INVALID_REQUEST, 1, [1, 2, 2], {}),
        (ErrorCode.INVALID_REQUEST, 1, [2, 3], {}),
        (ErrorCode.INVALID_REQUEST, 1, [], {}),
        (ErrorCode.INVALID_REQUEST, 1, [1, 2], {"recovery": 1}),
        (ErrorCode.INVALID_REQUEST, 1, [1], {"recovery": 1}),
    ],
    ids=str,
)
def test_an_isr_that_is_refused(
    controller: ControllerUnderTest,
    code: ErrorCode,
    broker_id: int,
    isr: list[int],
    changes: dict[str, int],
) -> None:
    assert alter_isr(controller, broker_id, isr, **changes) == (0, code)
    assert controller.last_records == ()


def test_an_isr_with_a_fenced_member_is_refused(controller: ControllerUnderTest) -> None:
    controller.heartbeat(3, want_fence=True)
    assert alter_isr(controller, 1, [1, 2, 3]) == (0, ErrorCode.INELIGIBLE_REPLICA)


@pytest.mark.parametrize(("broker_id", "change"), [(1, 1), (9, 0)])
def test_another_incarnation_may_not_alter_anything(
    controller: ControllerUnderTest, broker_id: int, change: int
) -> None:
    answer = alter_isr(controller, broker_id, [1], broker_epoch_change=change)
    assert answer == (ErrorCode.STALE_BROKER_EPOCH, 0)


def reassign(
    controller: ControllerUnderTest,
    replicas: list[int] | None,
    *,
    name: str = "t",
    index: int = 0,
    may_change_factor: bool = True,
) -> tuple[int, str | None]:
    target = AlterPartitionReassignmentsRequest.ReassignablePartition(index, replicas)
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_change_factor,
        topics=[AlterPartitionReassignmentsRequest.ReassignableTopic(name, [target])],
    )
    response = controller.answer(AlterPartitionReassignmentsResponse, request)
    assert (response.error_code, response.error_message) == (0, None)
    ((answer,),) = [topic.partitions for topic in response.responses]
    return answer.error_code, answer.error_message


def ongoing(controller: ControllerUnderTest, *names: str) -> list[tuple[str, int, list[int]]]:
    topics = [
        ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(name, [0, 5])
        for name in names
    ]
    response = controller.answer(
        ListPartitionReassignmentsResponse, ListPartitionReassignmentsRequest(topics=topics or None)
    )
    return [
        (topic.name, p.partition_index, p.adding_replicas)
        for topic in response.topics
        for p in topic.partitions
    ]


def test_a_reassignment_from_start_to_end(controller: ControllerUnderTest) -> None:
    assert ongoing(controller) == []
    assert reassign(controller, [4, 2, 3]) == (0, None)
    assert controller.partition("t").replicas == (4, 2, 3, 1)
    assert controller.partition("t").adding_replicas == (4,)
    assert controller.partition("t").removing_replicas == (1,)
    assert ongoing(controller) == ongoing(controller, "no", "t") == [("t", 0, [4])]
    # All that was to come is in sync: the leader is moved with the same record.
    assert alter_isr(controller, 1, [1, 2, 3, 4]) == (0, ErrorCode.NEW_LEADER_ELECTED)
    after = controller.partition("t")
    assert (after.replicas, after.leader, after.is_reassigning) == ((4, 2, 3), 4, False)
    assert after.directories == tuple(directory_of(broker_id) for broker_id in (4, 2, 3))


def test_a_reassignment_that_is_called_off(controller: ControllerUnderTest) -> None:
    assert reassign(controller, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    reassign(controller, [4, 2, 3])
    assert reassign(controller, None) == (0, None)
    assert sorted(controller.partition("t").replicas) == [1, 2, 3]
    assert not controller.partition("t").is_reassigning


@pytest.mark.parametrize(
    ("replicas", "what"),
    [
        ([], "an empty replica list."),
        ([1, 9], "broker 9, but no such broker is registered."),
        ([2, 2], "the broker 2 more than once."),
    ],
)
def test_reassignments_that_are_refused(
    controller: ControllerUnderTest, replicas: list[int], what: str
) -> None:
    message = f"The manual partition assignment includes {what}"
    assert reassign(controller, replicas) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    assert controller.last_records == ()


def test_reassignments_of_what_is_not_there(controller: ControllerUnderTest) -> None:
    assert reassign(controller, [1], name="no") == (3, "Unable to find a topic named no.")
    assert reassign(controller, [1], index=4) == (3, "Unable to find partition t:4.")


def test_a_partition_is_reassigned_only_once_in_a_request(controller: ControllerUnderTest) -> None:
    targets = [
        AlterPartitionReassignmentsRequest.ReassignablePartition(0, replicas)
        for replicas in ([4], [1, 2, 3, 4])
    ]
    topics = [
        AlterPartitionReassignmentsRequest.ReassignableTopic("t", [target]) for target in targets
    ]
    before = controller.partition("t")
    response = controller.answer(
        AlterPartitionReassignmentsResponse, AlterPartitionReassignmentsRequest(topics=topics)
    )
    codes = [topic.partitions[0].error_code for topic in response.responses]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert controller.partition("t").partition_epoch == before.partition_epoch + 1


def test_who_was_moved_away_is_not_moved_back_while_it_is_eligible(
    controller: ControllerUnderTest,
) -> None:
    change = PartitionChangeRecord(
        partition_id=0,
        topic_id=controller.image.topics.ids["t"],
        isr=[],
        leader=-1,
        eligible_leader_replicas=[4],
    )
    controller.commit(((change, 2),))
    assert reassign(controller, [1, 2, 4]) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert reassign(controller, [1, 2]) == (0, None)


def test_the_replication_factor_may_be_protected(controller: ControllerUnderTest) -> None:
    assert reassign(controller, [1, 2], may_change_factor=False) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 3 to 2",
    )
    assert reassign(controller, [4, 2, 3], may_change_factor=False) == (0, None)
    assert reassign(controller, [4, 2, 1], may_change_factor=False) == (0, None)


def assign(
    controller: ControllerUnderTest, broker_id: int, directory: bytes, topic: bytes, *indexes: int
) -> list[int]:
    partitions = [AssignReplicasToDirsRequest.PartitionData(index) for index in indexes]
    topics = [AssignReplicasToDirsRequest.TopicData(topic, partitions)]
    directories = [AssignReplicasToDirsRequest.DirectoryData(directory, topics)]
    epoch = controller.image.cluster.brokers[broker_id].epoch
    request = AssignReplicasToDirsRequest(broker_id, epoch, directories)
    response = controller.answer(AssignReplicasToDirsResponse, request)
    return [each.error_code for each in response.directories[0].topics[0].partitions]


def test_replicas_are_assigned_to_directories(controller: ControllerUnderTest) -> None:
    topic = controller.image.topics.ids["t"]
    assert assign(controller, 2, directory_of(2), topic, 0) == [0]
    assert controller.last_records == ()
    assert assign(controller, 2, directory_of(2), b"u" * 16, 0) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert assign(controller, 2, directory_of(2), topic, 9) == [3]
    assert assign(controller, 4, directory_of(4), topic, 0) == [6]
    assert assign(controller, 2, directory_of(2, 5), topic, 0) == [0]
    after = controller.partition("t")
    assert after.directory(2) == directory_of(2, 5)
    # The broker never registered that directory: the replica is as good as lost.
    assert 2 not in after.isr


def test_a_partition_that_is_assigned_twice_leaves_the_isr_once(
    controller: ControllerUnderTest,
) -> None:
    assign(controller, 2, directory_of(2, 5), controller.image.topics.ids["t"], 0, 0, 0)
    records = controller.written
    assert all(isinstance(record, PartitionChangeRecord) for record in records)
    assert [getattr(record, "isr", None) is not None for record in records] == [*[False] * 3, True]


def test_preferred_leaders_get_back_what_is_theirs(controller: ControllerUnderTest) -> None:
    controller.heartbeat(1, want_fence=True)
    controller.heartbeat(1)
    alter_isr(controller, 2, [1, 2, 3])
    assert controller.partition("t").leader == 2
    result = at_once(maybe_balance_partition_leaders(controller.image, controller.context()))
    controller.run(result)
    assert result.response is False
    assert controller.partition("t").leader == 1
    controller.settings = replace(controller.settings, elections_per_run_max=0)
    result = at_once(maybe_balance_partition_leaders(controller.image, controller.context()))
    assert result.response is True


def test_unclean_leaders_only_where_the_topic_allows_it(controller: ControllerUnderTest) -> None:
    for broker_id in (3, 2, 1):
        controller.heartbeat(broker_id, want_fence=True)
    controller.heartbeat(3)
    result = at_once(maybe_elect_unclean_leaders(controller.image, controller.context()))
    assert result.records == ()
    controller.commit(((ConfigRecord(2, "t", "unclean.leader.election.enable", "true"), 0),))
    controller.run(at_once(maybe_elect_unclean_leaders(controller.image, controller.context())))
    assert controller.partition("t").leader == 3
