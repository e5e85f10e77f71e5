"""Causes of leader changes, on logs that a controller of the project wrote for a known reason."""

import pytest
from tests.support.controller_under_test import (
    PREFERRED,
    UNCLEAN,
    ControllerUnderTest,
    cluster_with_topic,
    directory_of,
    elect,
    fence,
    partition_of,
    propose_isr,
    reassign,
)
from tests.support.spark.small_logs import written_records

from kvorum.controller.api import at_once
from kvorum.controller.periodic_tasks import (
    maybe_balance_partition_leaders,
    maybe_fence_stale_broker,
)
from kvorum.history import LogRecord, MetadataHistory
from kvorum.history.tables import LeaderChangeRow
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.messages.fence_broker_record import FenceBrokerRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest
from kvorum.wire.primitives import Message

Told = tuple[int | None, int, str, bool]
"""Old leader, new leader, cause, and whether the election was unclean."""


def told(records: list[LogRecord]) -> list[Told]:
    """The changes of leaders in a log; those at its end, whose cause is still open, included."""
    history = MetadataHistory()
    return [
        (row.old_leader, row.new_leader, str(row.cause), row.is_unclean)
        for row in [*history.add_all(records), *history.open_rows()]
        if isinstance(row, LeaderChangeRow)
    ]


def last_told(controller: ControllerUnderTest) -> Told:
    return told(written_records(controller.records))[-1]


@pytest.fixture
def controller() -> ControllerUnderTest:
    """A controller with a partition on the brokers 1, which leads it, and 2."""
    return cluster_with_topic(1, 2)


def test_a_new_partition() -> None:
    assert last_told(cluster_with_topic(2, 1)) == (None, 2, "partition_created", False)


def test_a_broker_that_asks_to_be_fenced(controller: ControllerUnderTest) -> None:
    fence(controller, 1)
    assert last_told(controller) == (1, 2, "broker_fenced", False)


def test_a_broker_whose_session_expires(controller: ControllerUnderTest) -> None:
    controller.now_ms += 1_000_000
    for broker_id in (2, 3, 4):
        controller.heartbeat(broker_id)
    controller.run(at_once(maybe_fence_stale_broker(controller.image, controller.context())))
    assert controller.image.cluster.brokers[1].is_fenced
    assert last_told(controller) == (1, 2, "broker_fenced", False)


def test_the_last_replica_is_fenced_and_comes_back() -> None:
    controller = cluster_with_topic(1)
    fence(controller, 1)
    assert last_told(controller) == (1, -1, "broker_fenced", False)
    controller.heartbeat(1)
    assert last_told(controller) == (-1, 1, "broker_unfenced", False)


def test_a_fenced_leader_of_a_topic_that_allows_unclean_elections() -> None:
    controller = cluster_with_topic(1, 2, is_unclean_enabled=True)
    propose_isr(controller, 1)
    fence(controller, 1)
    assert last_told(controller) == (1, 2, "broker_fenced", True)


def test_a_controlled_shutdown(controller: ControllerUnderTest) -> None:
    controller.heartbeat(1, want_shut_down=True)
    assert last_told(controller) == (1, 2, "controlled_shutdown", False)


def test_a_controlled_shutdown_that_ends_does_not_change_the_cause(
    controller: ControllerUnderTest,
) -> None:
    controller.heartbeat(1, want_shut_down=True)
    for broker_id in (2, 3, 4):
        controller.heartbeat(broker_id)
    for _ in range(2):
        controller.heartbeat(1, want_shut_down=True)
    assert controller.image.cluster.brokers[1].is_fenced
    assert last_told(controller) == (1, 2, "controlled_shutdown", False)


def test_a_broker_that_is_unregistered(controller: ControllerUnderTest) -> None:
    controller.ask(UnregisterBrokerRequest(broker_id=1))
    assert last_told(controller) == (1, 2, "broker_unregistered", False)


def test_a_broker_that_starts_again_before_it_is_fenced(controller: ControllerUnderTest) -> None:
    controller.now_ms += 1_000_000
    controller.register(1, incarnation=1)
    assert last_told(controller) == (1, 2, "broker_restarted", False)


def test_a_directory_that_a_heartbeat_reports_as_failed(controller: ControllerUnderTest) -> None:
    request = BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=controller.image.cluster.brokers[1].epoch,
        current_metadata_offset=controller.next_offset,
        offline_log_dirs=[directory_of(1)],
    )
    # The last directory of a broker cannot be given up, so it has another one.
    second = controller.registration(1)
    second.log_dirs = [directory_of(1), directory_of(1, 1)]
    controller.ask(second)
    controller.heartbeat(1)
    controller.ask(request)
    assert last_told(controller) == (1, 2, "directory_failed", False)


def test_a_replica_that_is_assigned_to_a_failed_directory(controller: ControllerUnderTest) -> None:
    partition = AssignReplicasToDirsRequest.PartitionData(0)
    topic_id = controller.image.topics.ids["orders"]
    topic = AssignReplicasToDirsRequest.TopicData(topic_id, [partition])
    failed = AssignReplicasToDirsRequest.DirectoryData(directory_of(1, 9), [topic])
    epoch = controller.image.cluster.brokers[1].epoch
    controller.ask(AssignReplicasToDirsRequest(1, epoch, [failed]))
    assert last_told(controller) == (1, 2, "directory_failed", False)


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_a_preferred_election(controller: ControllerUnderTest, is_asked_for: bool) -> None:
    fence(controller, 1)
    controller.heartbeat(1)
    propose_isr(controller, 2, 1)
    if is_asked_for:
        elect(controller, PREFERRED)
    else:
        result = at_once(maybe_balance_partition_leaders(controller.image, controller.context()))
        controller.run(result)
    assert last_told(controller) == (2, 1, "preferred_election", False)


def test_a_preferred_election_just_before_the_old_leader_is_fenced(
    controller: ControllerUnderTest,
) -> None:
    fence(controller, 1)
    controller.heartbeat(1)
    propose_isr(controller, 2, 1)
    elect(controller, PREFERRED)
    # One run of changes: the election, and what fencing changes.
    fence(controller, 2)
    assert last_told(controller) == (2, 1, "preferred_election", False)


def test_an_unclean_election(controller: ControllerUnderTest) -> None:
    propose_isr(controller, 1)
    fence(controller, 1)
    elect(controller, UNCLEAN)
    assert last_told(controller) == (-1, 2, "unclean_election", True)


def test_a_reassignment(controller: ControllerUnderTest) -> None:
    reassign(controller, [3, 2])
    propose_isr(controller, 1, 2, 3)
    partition = partition_of(controller)
    assert (partition.replicas, partition.isr) == ((3, 2), (2, 3))
    assert last_told(controller) == (1, 3, "reassignment", False)


def test_a_reassignment_that_is_cancelled_while_only_new_replicas_are_in_sync() -> None:
    controller = cluster_with_topic(1, 2, is_unclean_enabled=True)
    reassign(controller, [3, 4])
    propose_isr(controller, 1, 3)
    fence(controller, 1)
    controller.heartbeat(1)
    assert (partition_of(controller).leader, partition_of(controller).isr) == (3, (3,))
    reassign(controller, None)
    assert partition_of(controller).replicas == (1, 2)
    assert last_told(controller) == (3, 1, "reassignment", True)


def test_a_log_that_does_not_tell(controller: ControllerUnderTest) -> None:
    controller.commit(
        ((PartitionChangeRecord(0, controller.image.topics.ids["orders"], isr=[2], leader=2), 0),)
    )
    assert last_told(controller) == (1, 2, "unknown", False)
    controller.start_broker(3)
    assert last_told(controller) == (1, 2, "unknown", False)


def test_records_of_other_brokers_explain_nothing(controller: ControllerUnderTest) -> None:
    controller.commit(
        ((PartitionChangeRecord(0, controller.image.topics.ids["orders"], isr=[2], leader=2), 0),)
    )
    fence(controller, 3)
    assert last_told(controller) == (1, 2, "unknown", False)


def test_the_oldest_record_types() -> None:
    topic_id = bytes(15) + b"\x07"
    messages: list[Message] = [
        RegisterBrokerRecord(broker_id=1, broker_epoch=1, fenced=False),
        RegisterBrokerRecord(broker_id=2, broker_epoch=2, fenced=False),
        TopicRecord("orders", topic_id),
        PartitionRecord(0, topic_id, replicas=[1, 2], isr=[1, 2], leader=1),
        PartitionChangeRecord(0, topic_id, isr=[2], leader=2),
        FenceBrokerRecord(id=1, epoch=1),
        PartitionChangeRecord(0, topic_id, leader=-1),
        FenceBrokerRecord(id=2, epoch=2),
        UnfenceBrokerRecord(id=2, epoch=2),
        PartitionChangeRecord(0, topic_id, leader=2),
    ]
    assert told(written_records([(message, 0) for message in messages])) == [
        (None, 1, "partition_created", False),
        (1, 2, "broker_fenced", False),
        (2, -1, "broker_fenced", False),
        (-1, 2, "broker_unfenced", False),
    ]


def test_a_cause_is_open_until_the_run_of_changes_ends(controller: ControllerUnderTest) -> None:
    fence(controller, 1)
    records = written_records(controller.records)
    history = MetadataHistory()
    before = list(history.add_all(records[:-1]))
    assert [row.cause for row in history.open_rows() if isinstance(row, LeaderChangeRow)] == [
        "unknown"
    ]
    rows = [*before, *history.add(records[-1])]
    assert [row.cause for row in rows if isinstance(row, LeaderChangeRow)] == [
        "partition_created",
        "broker_fenced",
    ]
    assert not [row for row in history.open_rows() if isinstance(row, LeaderChangeRow)]


def test_an_older_metadata_version_without_eligible_leaders() -> None:
    controller = ControllerUnderTest()
    controller.activate(MetadataVersion.V3_4_IV0)
    for broker_id in (1, 2):
        controller.start_broker(broker_id)
    controller.create_topic("orders", replicas=2)
    leader = partition_of(controller).leader
    fence(controller, leader)
    fence(controller, 3 - leader)
    controller.heartbeat(3 - leader)
    assert told(written_records(controller.records))[1:] == [
        (leader, 3 - leader, "broker_fenced", False),
        (3 - leader, -1, "broker_fenced", False),
        (-1, 3 - leader, "broker_unfenced", False),
    ]
