"""A broker's life: registration, heartbeats, fencing, shutdown, and being forgotten."""

from typing import Any

import pytest
from tests.support.controller_under_test import ControllerUnderTest, directory_of, started_cluster

from kvorum.controller.api import at_once
from kvorum.controller.periodic_tasks import maybe_fence_stale_broker, no_op
from kvorum.metadata import directory_ids
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord

Feature = BrokerRegistrationRequest.Feature
FEATURES = ControllerUnderTest().registration(9).features


def change(controller: ControllerUnderTest, broker_id: int, **fields: Any) -> object:
    epoch = controller.image.cluster.brokers[broker_id].epoch
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, **fields)


def fences_a_silent_broker(controller: ControllerUnderTest) -> bool:
    """Look for one, commit what is to be done, and return whether there may be another."""
    result = at_once(maybe_fence_stale_broker(controller.image, controller.context()))
    controller.run(result)
    return result.response


@pytest.mark.parametrize(
    ("code", "field", "value"),
    [
        (ErrorCode.INCONSISTENT_CLUSTER_ID, "cluster_id", "another"),
        (ErrorCode.BROKER_ID_NOT_REGISTERED, "is_migrating_zk_broker", True),
        (ErrorCode.INVALID_REGISTRATION, "log_dirs", []),
        (ErrorCode.INVALID_REGISTRATION, "log_dirs", [directory_ids.LOST]),
        (ErrorCode.INVALID_REGISTRATION, "log_dirs", [directory_of(9), directory_of(9)]),
        (ErrorCode.INVALID_REGISTRATION, "log_dirs", [directory_of(1)]),
        (ErrorCode.INVALID_REGISTRATION, "features", FEATURES[1:]),
        (
            ErrorCode.UNSUPPORTED_VERSION,
            "features",
            [Feature("metadata.version", 7, 29), *FEATURES[1:]],
        ),
        (
            ErrorCode.UNSUPPORTED_VERSION,
            "features",
            [feature for feature in FEATURES if not feature.name.startswith("eligible")],
        ),
        (ErrorCode.UNSUPPORTED_VERSION, "features", [*FEATURES, Feature("new.version", 1, 2)]),
    ],
)
def test_registrations_that_are_refused(code: ErrorCode, field: str, value: object) -> None:
    controller = started_cluster(brokers=1)
    request = controller.registration(9)
    setattr(request, field, value)
    assert controller.ask(request) == BrokerRegistrationResponse(error_code=code, broker_epoch=-1)
    assert controller.last_records == ()


def test_a_registration_is_written_down_whole() -> None:
    controller = started_cluster(brokers=0)
    epoch = controller.register(4, rack="r")
    ((record, version),) = controller.last_records
    assert isinstance(record, RegisterBrokerRecord)
    assert version == 4
    assert epoch == record.broker_epoch == controller.next_offset - 1
    assert (record.broker_id, record.rack, record.fenced) == (4, "r", True)
    assert record.log_dirs == [directory_of(4)]
    assert record.cordoned_log_dirs is None
    assert [point.port for point in record.end_points] == [9004]
    assert record.in_controlled_shutdown is False


def test_an_old_level_gets_an_old_record_without_directories() -> None:
    controller = started_cluster(brokers=0, version=MetadataVersion.V3_3_IV3)
    controller.register(4)
    ((record, version),) = controller.last_records
    assert isinstance(record, RegisterBrokerRecord)
    assert (version, record.log_dirs) == (1, [])


def test_the_same_incarnation_keeps_its_epoch_and_its_state() -> None:
    controller = started_cluster(brokers=1)
    before = controller.image.cluster.brokers[1]
    assert controller.register(1, rack="moved") == before.epoch
    after = controller.image.cluster.brokers[1]
    assert (after.rack, after.is_fenced, after.epoch) == ("moved", False, before.epoch)
    assert after.registered_at_offset == controller.next_offset - 1


def test_a_new_incarnation_has_to_wait_for_the_session_of_the_old_one() -> None:
    controller = started_cluster(brokers=1)
    again = controller.registration(1, incarnation=1)
    controller.now_ms = 9_000
    assert controller.ask(again) == BrokerRegistrationResponse(error_code=101, broker_epoch=-1)
    controller.now_ms = 9_001
    response = controller.answer(BrokerRegistrationResponse, again)
    assert (response.error_code, response.broker_epoch) == (0, controller.next_offset - 1)
    assert controller.image.cluster.brokers[1].is_fenced


def test_an_unclean_restart_takes_the_broker_out_of_isr_and_elr() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", replicas=2)
    controller.now_ms = 10_000
    controller.register(1, incarnation=1)
    assert [*map(type, controller.written)] == [PartitionChangeRecord, RegisterBrokerRecord]
    partition = controller.partition("t")
    assert (partition.isr, partition.elr, partition.leader) == ((2,), (), 2)


def test_a_broker_is_unfenced_once_it_has_read_its_registration() -> None:
    controller = started_cluster(brokers=0)
    epoch = controller.register(1)
    early = controller.heartbeat(1, metadata_offset=epoch - 1)
    assert (early.is_caught_up, early.is_fenced) == (False, True)
    waiting = controller.heartbeat(1, metadata_offset=epoch, want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    assert controller.written == []
    ready = controller.heartbeat(1, metadata_offset=epoch)
    assert (ready.is_caught_up, ready.is_fenced, ready.should_shut_down) == (True, False, False)
    assert controller.last_records == ((change(controller, 1, fenced=-1), 0),)


@pytest.mark.parametrize(("broker_id", "epoch_change"), [(1, 1), (1, -1), (7, 0)])
def test_heartbeats_of_another_incarnation_are_stale(broker_id: int, epoch_change: int) -> None:
    controller = started_cluster(brokers=1)
    epoch = controller.image.cluster.brokers[1].epoch + epoch_change
    response = controller.ask(BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch))
    # A refused heartbeat leaves everything else at its default.
    assert response == BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)


def test_an_unfenced_broker_leads_what_no_broker_leads() -> None:
    controller = started_cluster(brokers=1)
    controller.create_topic("t")
    controller.heartbeat(1, want_fence=True)
    assert controller.partition("t").leader == -1
    controller.heartbeat(1)
    assert controller.written[0] == change(controller, 1, fenced=-1)
    assert controller.partition("t").leader == 1
    assert controller.partition("t").isr == (1,)


def test_fencing_moves_leaders_before_it_marks_the_broker() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", partitions=4, replicas=2)
    assert controller.heartbeat(1, want_fence=True).is_fenced
    *changes, last = controller.written
    assert last == change(controller, 1, fenced=1)
    assert len(changes) == 4
    topic = controller.image.topics.by_name("t")
    assert topic is not None
    assert {(each.leader, each.isr) for each in topic.partitions.values()} == {(2, (2,))}


def test_a_silent_broker_is_fenced_and_the_second_time_nothing_is_left() -> None:
    controller = started_cluster(brokers=2)
    controller.now_ms = 9_000
    assert not fences_a_silent_broker(controller)
    controller.heartbeat(2)
    controller.now_ms = 9_001
    assert fences_a_silent_broker(controller)
    assert controller.written == [change(controller, 1, fenced=1)]
    assert not fences_a_silent_broker(controller)
    assert not controller.image.cluster.brokers[2].is_fenced


def test_a_session_leaves_out_the_time_in_which_the_controller_had_no_turn() -> None:
    controller = started_cluster(brokers=2)
    controller.sessions.leave_out(5_000)
    controller.now_ms = 6_000
    controller.heartbeat(2)
    controller.now_ms = 14_000
    assert not fences_a_silent_broker(controller)
    controller.now_ms = 14_001
    assert fences_a_silent_broker(controller)
    assert controller.written == [change(controller, 1, fenced=1)]
    controller.now_ms = 15_001
    assert fences_a_silent_broker(controller)
    assert controller.written == [change(controller, 2, fenced=1)]


def test_a_new_controller_gives_everybody_a_session() -> None:
    controller = started_cluster(brokers=1)
    controller.register(2)
    controller.sessions.__init__(9_000)  # type: ignore[misc]  # what a failover leaves: nothing
    controller.sessions.start(controller.image.cluster, now_ms=100_000)
    controller.now_ms = 109_001
    fences_a_silent_broker(controller)
    assert [m for m in controller.written if isinstance(m, BrokerRegistrationChangeRecord)] == [
        change(controller, 1, fenced=1)
    ]
    assert not fences_a_silent_broker(controller)


def test_a_broker_without_leaderships_stops_at_once() -> None:
    controller = started_cluster(brokers=1)
    response = controller.heartbeat(1, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (True, True)
    assert controller.written == [change(controller, 1, fenced=1)]


def test_controlled_shutdown_waits_for_the_others_to_read_the_changes() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", partitions=2, replicas=2)
    controller.heartbeat(2)
    first = controller.heartbeat(1, want_shut_down=True)
    assert (first.should_shut_down, first.is_fenced) == (False, False)
    assert controller.last_records[0] == (change(controller, 1, in_controlled_shutdown=1), 1)
    last_change = controller.next_offset - 1
    assert not controller.heartbeat(1, want_shut_down=True).should_shut_down
    controller.heartbeat(2, metadata_offset=last_change - 1)
    assert not controller.heartbeat(1, want_shut_down=True).should_shut_down
    assert controller.written == []
    controller.heartbeat(2, metadata_offset=last_change)
    done = controller.heartbeat(1, want_shut_down=True)
    assert (done.should_shut_down, done.is_fenced) == (True, True)
    assert controller.image.cluster.brokers[1].is_fenced


def test_cordoned_directories_are_written_when_they_are_news() -> None:
    controller = started_cluster(brokers=1)

    def heartbeat(cordoned: list[bytes] | None) -> tuple[RecordAndVersion, ...]:
        controller.heartbeat(1, cordoned_log_dirs=cordoned)
        return controller.last_records

    assert heartbeat(None) == ()
    assert heartbeat([]) == ((change(controller, 1, cordoned_log_dirs=[]), 3),)
    assert heartbeat([]) == ()
    all_of_them = [directory_of(1)]
    assert heartbeat(all_of_them) == ((change(controller, 1, cordoned_log_dirs=all_of_them), 3),)
    assert not controller.image.cluster.brokers[1].has_uncordoned_directory


def test_offline_directories_take_their_replicas_out_of_the_isr() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", replicas=2)
    request = BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=controller.image.cluster.brokers[1].epoch,
        current_metadata_offset=controller.next_offset,
        offline_log_dirs=[directory_of(1), directory_of(9)],
    )
    controller.ask(request)
    changed, gone = controller.written
    assert isinstance(changed, PartitionChangeRecord)
    assert changed.isr == [2]
    # No directory is left; an empty list is read as "no change", as Kafka reads it.
    assert gone == change(controller, 1, log_dirs=[])


def test_unregistering_a_broker() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", replicas=2)
    epoch = controller.image.cluster.brokers[2].epoch
    assert controller.ask(UnregisterBrokerRequest(broker_id=2)) == UnregisterBrokerResponse()
    assert controller.written[-1] == UnregisterBrokerRecord(broker_id=2, broker_epoch=epoch)
    assert 2 not in controller.image.cluster.brokers
    assert controller.partition("t").isr == (1,)


def test_unregistering_an_unknown_broker() -> None:
    controller = started_cluster(brokers=1)
    assert controller.ask(UnregisterBrokerRequest(broker_id=8)) == UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
        error_message="Broker ID 8 is not currently registered",
    )


def test_an_idle_log_gets_no_ops() -> None:
    assert [message for message, _ in no_op().records] == [NoOpRecord()]


def test_what_is_written_later_does_not_put_off_a_controlled_shutdown() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", partitions=2, replicas=2)
    controller.heartbeat(2)
    controller.heartbeat(1, want_shut_down=True)
    last_change = controller.next_offset - 1
    controller.create_topic("later")
    assert not controller.heartbeat(1, want_shut_down=True).should_shut_down
    controller.heartbeat(2, metadata_offset=last_change)
    assert controller.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_broker_whose_registration_changes_has_read_nothing_until_its_next_heartbeat() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", partitions=2, replicas=2)
    controller.heartbeat(1, want_shut_down=True)
    controller.heartbeat(2, want_fence=True)
    controller.heartbeat(2)
    assert not controller.heartbeat(1, want_shut_down=True).should_shut_down
    controller.heartbeat(2)
    assert controller.heartbeat(1, want_shut_down=True).should_shut_down


def test_of_listeners_with_one_name_the_last_counts_in_the_place_of_the_first() -> None:
    controller = started_cluster(brokers=0)
    request = controller.registration(1)
    request.listeners = [
        BrokerRegistrationRequest.Listener(name, "host", port)
        for name, port in (("A", 1), ("B", 2), ("A", 3))
    ]
    controller.ask(request)
    record = controller.written[-1]
    assert isinstance(record, RegisterBrokerRecord)
    assert [(each.name, each.port) for each in record.end_points] == [("A", 3), ("B", 2)]


def test_the_same_incarnation_begins_its_heartbeats_again() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", partitions=2, replicas=2)
    controller.heartbeat(2)
    controller.heartbeat(1, want_shut_down=True)
    controller.ask(controller.registration(1))
    controller.heartbeat(2)
    # It leads nothing any more, and it is forgotten that it was shutting down.
    response = controller.heartbeat(1)
    assert (response.is_fenced, response.should_shut_down) == (False, False)


@pytest.mark.parametrize(("previous_epoch", "is_believed"), [(-2, True), (-1, False), (7, False)])
def test_who_was_never_registered_may_say_so(previous_epoch: int, is_believed: bool) -> None:
    controller = started_cluster(brokers=1)
    controller.create_topic("t")
    controller.ask(UnregisterBrokerRequest(1))
    assert controller.partition("t").elr == (1,)
    request = controller.registration(1, incarnation=1)
    request.previous_broker_epoch = previous_epoch
    controller.ask(request)
    assert controller.partition("t").elr == ((1,) if is_believed else ())
