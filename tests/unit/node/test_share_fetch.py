"""Fetches of a share group: what members get, when they wait, and what is written before whom."""

import pytest
from tests.unit.node.share_fetch_world import (
    ALICE,
    BOB,
    LOCK_MS,
    PARTITION,
    ShareWorld,
    acknowledged,
    answered,
    is_never_at_hand,
)

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType, ShareAcknowledgementBatch
from kvorum.broker.share_partition.acquisition import ShareAcquireMode
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.broker.share_fetch import delayed_share_fetch
from kvorum.node.broker.share_fetch.partition_max_bytes import partition_max_bytes
from kvorum.node.broker.share_fetch.share_fetch import rotated
from kvorum.node.coroutines import Task
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError, InvalidRecordError
from kvorum.wire.records.batch import read_batches

AVAILABLE, ACKNOWLEDGED = 0, 2


@pytest.fixture
def world() -> ShareWorld:
    """Three committed records, each in a batch."""
    world = ShareWorld()
    world.write(b"a", b"b", b"c")
    return world


def test_a_member_acquires_committed_records_and_another_one_does_not(world: ShareWorld) -> None:
    first = world.fetch(ALICE)
    assert (first.offsets, first.delivery_counts) == ([0, 1, 2], {1})
    assert [batch.base_offset for batch in read_batches(first.records)] == [0, 1, 2]
    assert world.fetch(BOB).offsets == []


def test_a_fetch_returns_the_batches_of_what_it_acquires_alone(world: ShareWorld) -> None:
    first = world.fetch(max_records=1)
    assert first.offsets == [0]
    second = world.fetch(BOB, max_records=1)
    assert second.offsets == [1]
    assert [batch.base_offset for batch in read_batches(second.records)] == [1]


def test_records_that_are_not_committed_are_not_acquired(world: ShareWorld) -> None:
    world.leader.write(b"d")
    found = world.fetch()
    assert found.offsets == [0, 1, 2]


def test_a_record_whose_lock_has_expired_is_delivered_once_more(world: ShareWorld) -> None:
    world.fetch(ALICE)
    world.run(for_ms=LOCK_MS - 50)
    assert world.fetch(BOB).offsets == []
    world.run(for_ms=100)
    again = world.fetch(BOB)
    assert (again.offsets, again.delivery_counts) == ([0, 1, 2], {2})
    assert world.keeper.batches == [(0, 2, AVAILABLE, 1)]
    refused = acknowledged(world.acknowledging(0, 2, member=ALICE))
    assert refused.code is ErrorCode.INVALID_RECORD_STATE


def test_an_acknowledgement_is_answered_once_it_is_written(world: ShareWorld) -> None:
    world.fetch()
    world.keeper.is_held = True
    results = world.acknowledging(0, 2)
    assert not results
    world.keeper.release()
    world.run()
    assert acknowledged(results).code is ErrorCode.NONE
    assert world.keeper.batches == [(0, 2, ACKNOWLEDGED, 1)]


@pytest.mark.parametrize(
    ("write_error", "start_offset", "left"),
    [(ErrorCode.NONE, 3, []), (ErrorCode.UNKNOWN_SERVER_ERROR, 0, [0, 1, 2])],
    ids=["written", "refused"],
)
def test_an_acknowledgement_is_completed_whose_client_is_gone(
    world: ShareWorld, write_error: ErrorCode, start_offset: int, left: list[int]
) -> None:
    """The request ends with its connection, but what it has decided is written all the same."""
    world.fetch()
    world.keeper.is_held = True
    world.keeper.write_error = write_error
    batch = ShareAcknowledgementBatch(0, 2, [AcknowledgeType.ACCEPT])
    work = world.manager.acknowledge(ALICE, {PARTITION: [batch]})
    request = Task(work, lambda result: pytest.fail(f"nobody waits for {result}"))
    request.close()
    world.keeper.release()
    world.run(for_ms=LOCK_MS)
    (led,) = world.manager.partitions
    assert led.state.start_offset == start_offset
    world.keeper.write_error = ErrorCode.NONE
    assert world.fetch(BOB).offsets == left


def test_another_leader_delivers_what_was_not_accepted_and_nothing_else(world: ShareWorld) -> None:
    world.fetch()
    world.acknowledging(0, 1)
    world.acknowledging(2, 2, kind=AcknowledgeType.RELEASE)
    world.new_manager()
    again = world.fetch(BOB)
    assert (again.offsets, again.delivery_counts) == ([2], {2})


def test_writes_are_kept_in_the_order_in_which_they_were_decided(world: ShareWorld) -> None:
    world.fetch()
    world.keeper.is_held = True
    world.acknowledging(0, 0, kind=AcknowledgeType.RELEASE)
    world.acknowledging(1, 1)
    assert len(world.keeper.waiting) == 1, "the second write waits for the first one"
    world.keeper.release()
    world.run()
    assert world.keeper.batches == [(0, 0, AVAILABLE, 1), (1, 1, ACKNOWLEDGED, 1)]


def test_a_fetch_waits_for_records_and_for_its_time(world: ShareWorld) -> None:
    world.fetch()
    waiting = world.fetching(BOB, max_wait_ms=500)
    late = world.fetching(BOB, max_wait_ms=50)
    world.run(for_ms=60)
    assert answered(late).offsets == []
    assert not waiting
    world.write(b"d")
    world.run(for_ms=5)
    found = answered(waiting)
    assert found.offsets == [3]


def test_a_fetch_waits_for_enough_bytes(world: ShareWorld) -> None:
    waiting = world.fetching(max_wait_ms=100, min_bytes=100_000)
    world.run(for_ms=50)
    assert not waiting
    world.run(for_ms=100)
    found = answered(waiting)
    assert found.offsets == [0, 1, 2]


def test_a_released_record_wakes_a_fetch_that_waits(world: ShareWorld) -> None:
    world.fetch(ALICE)
    waiting = world.fetching(BOB, max_wait_ms=500)
    world.acknowledging(1, 1, kind=AcknowledgeType.RELEASE)
    world.run(for_ms=5)
    found = answered(waiting)
    assert (found.offsets, found.delivery_counts) == ([1], {2})


def test_a_fetch_goes_on_where_another_one_has_read(
    world: ShareWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one reads from the disk, another one would read the same records."""
    log = world.leader.partition.log.local_log
    monkeypatch.setattr(type(log), "is_at_hand", is_never_at_hand)
    first = world.fetching(ALICE, max_records=1, max_wait_ms=500)
    world.run(for_ms=0.001)
    second = world.fetching(BOB, max_records=1, max_wait_ms=500)
    assert not first
    world.run(for_ms=100)
    assert (answered(first).offsets, answered(second).offsets) == ([0], [1])


def test_a_fetch_waits_until_the_state_is_read(world: ShareWorld) -> None:
    world.keeper.is_held = True
    waiting = world.fetching(max_wait_ms=500)
    world.run(for_ms=50)
    assert not waiting
    world.keeper.release()
    world.run(for_ms=5)
    found = answered(waiting)
    assert found.offsets == [0, 1, 2]


def test_a_group_without_a_state_begins_at_the_committed_end(world: ShareWorld) -> None:
    world.keeper.start_offset = -1
    assert world.fetch().offsets == []
    world.write(b"d")
    found = world.fetch()
    assert found.offsets == [3]


def test_a_group_without_a_state_waits_for_the_high_watermark_of_a_new_leader(
    world: ShareWorld,
) -> None:
    former = world.replicas.all[2]
    world.replicas.lead(former.id)
    former.write(b"d")
    world.leader.fetch_from(former)
    world.replicas.lead(world.leader.id)
    assert world.leader.partition.log.high_watermark < world.leader.end_offset
    world.keeper.start_offset = -1
    assert world.fetch().code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert not world.manager.partitions
    world.replicas.copy(1, 2, 3)
    assert world.fetch().offsets == [], "what was committed before the group began"
    world.write(b"e")
    assert world.fetch().offsets == [4]


def test_a_state_that_cannot_be_read_is_asked_for_again_by_the_next_fetch(
    world: ShareWorld,
) -> None:
    world.keeper.read_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    failed = world.fetch()
    assert failed.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.keeper.read_error = ErrorCode.NONE
    found = world.fetch()
    assert found.offsets == [0, 1, 2]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CorruptBatchError("a batch", "is damaged", offset=0), ErrorCode.UNKNOWN_SERVER_ERROR),
        (InvalidRecordError("a record", "is too large", offset=0), ErrorCode.INVALID_RECORD),
        (ZeroDivisionError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=["damaged", "too large", "unexpected"],
)
def test_a_start_that_cannot_be_found_is_looked_for_again_by_the_next_fetch(
    world: ShareWorld,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    code: ErrorCode,
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    world.keeper.start_offset = -1
    world.begin_groups_at("by_duration:P30000D")
    with monkeypatch.context() as patched:
        patched.setattr(BatchInspector, "first_record_since", fail)
        assert world.fetch().code is code
    assert caplog.records[-1].exc_info is not None
    assert not world.manager.partitions
    assert world.fetch().offsets == [0, 1, 2]


def test_a_share_partition_that_is_fenced_at_its_keeper_is_forgotten(world: ShareWorld) -> None:
    world.fetch()
    world.keeper.write_error = ErrorCode.FENCED_STATE_EPOCH
    refused = acknowledged(world.acknowledging(0, 2))
    assert refused.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not world.manager.partitions
    gone = acknowledged(world.acknowledging(0, 2))
    assert gone.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_records_stay_a_members_where_the_write_has_failed(world: ShareWorld) -> None:
    world.fetch()
    world.keeper.write_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    refused = acknowledged(world.acknowledging(0, 2))
    assert refused.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.keeper.write_error = ErrorCode.NONE
    assert acknowledged(world.acknowledging(0, 2)).code is ErrorCode.NONE


def test_a_broker_that_leads_no_longer_ends_waiting_fetches_and_refuses_others(
    world: ShareWorld,
) -> None:
    world.fetch()
    waiting = world.fetching(BOB, max_wait_ms=500)
    world.replicas.lead(2)
    world.run(for_ms=5)
    assert not world.manager.partitions
    refused = world.fetch()
    assert refused.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.run(for_ms=600)
    assert waiting


def test_a_higher_leader_epoch_of_the_same_leader_leaves_members_what_they_have(
    world: ShareWorld,
) -> None:
    world.fetch(ALICE)
    world.replicas.lead(world.leader.id)
    assert world.fetch(BOB).offsets == []
    world.write(b"d")
    assert world.fetch(BOB).offsets == [3], "it is read in the higher epoch"
    assert acknowledged(world.acknowledging(0, 2, member=ALICE)).code is ErrorCode.NONE
    assert [data.leader_epoch for data in world.keeper.written] == [0], "the epoch of its begin"


def test_a_leader_that_has_not_heard_of_another_one_begins_again_when_it_writes(
    world: ShareWorld,
) -> None:
    world.fetch(ALICE)
    world.replicas.lead(2, known_by="23")
    world.keeper.leader_epoch = world.replicas.leader_epoch
    world.replicas.lead(world.leader.id)
    assert world.fetch(BOB).offsets == []
    refused = acknowledged(world.acknowledging(0, 2, member=ALICE))
    assert refused.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.replicas.copy(1, 2, 3)
    assert world.fetch(BOB).offsets == [0, 1, 2]
    assert acknowledged(world.acknowledging(0, 2, member=BOB)).code is ErrorCode.NONE
    assert [data.leader_epoch for data in world.keeper.written] == [2]


def test_a_start_is_looked_for_again_in_a_higher_leader_epoch(world: ShareWorld) -> None:
    world.keeper.start_offset = -1
    world.keeper.is_held = True
    waiting = world.fetching(max_wait_ms=500)
    world.replicas.lead(world.leader.id)
    world.keeper.release()
    world.run(for_ms=5)
    assert answered(waiting).code is ErrorCode.FENCED_LEADER_EPOCH
    world.replicas.copy(1, 2, 3)
    assert world.fetch().code is ErrorCode.NONE
    (led,) = world.manager.partitions
    assert led.state.start_offset == 3


@pytest.mark.parametrize("elections", [0, 1], ids=["one epoch", "a higher epoch"])
def test_records_that_the_log_has_lost_are_passed_over(world: ShareWorld, elections: int) -> None:
    world.fetch()
    world.acknowledging(0, 2, kind=AcknowledgeType.RELEASE)
    for _ in range(elections):
        world.replicas.lead(world.leader.id)
    world.leader.partition.log.delete_records(2, now_ms=0)
    world.fetch()
    found = world.fetch()
    assert found.offsets == [2]


def test_a_damaged_batch_is_named_and_harms_no_other_fetch(
    world: ShareWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise CorruptBatchError("a batch", "is damaged", offset=0)

    with monkeypatch.context() as patched:
        patched.setattr(delayed_share_fetch, "read_entries", damaged)
        assert world.fetch().code is ErrorCode.CORRUPT_MESSAGE
    assert world.fetch().offsets == [0, 1, 2], "the fetch lock is free again"


def test_the_end_of_a_connection_releases_what_its_member_has(world: ShareWorld) -> None:
    connection = DisconnectListeners()
    for member, own in ((ALICE, connection), (BOB, DisconnectListeners())):
        world.manager.new_context(
            member, 0, own, listed=[PARTITION], forgotten=(), has_acknowledgements=False
        )
    world.fetch(ALICE)
    connection.on_disconnect()
    world.run()
    found = world.fetch(BOB)
    assert (found.offsets, found.delivery_counts) == ([0, 1, 2], {2})


def test_a_group_without_sessions_is_forgotten(world: ShareWorld) -> None:
    connection = DisconnectListeners()
    world.manager.new_context(
        ALICE, 0, connection, listed=[PARTITION], forgotten=(), has_acknowledgements=False
    )
    world.fetch(ALICE)
    connection.on_disconnect()
    assert not world.manager.partitions


def test_a_batch_is_acquired_whole_unless_the_limit_of_records_is_strict() -> None:
    world = ShareWorld()
    world.write(b"a")
    taken = answered(_after(world, ShareAcquireMode.BATCH_OPTIMIZED))
    assert taken.offsets == [0]


def _after(world: ShareWorld, mode: ShareAcquireMode) -> list[object]:
    results = world.fetching(mode=mode, max_wait_ms=1)
    world.run(for_ms=20)
    return results


@pytest.mark.parametrize(
    ("max_bytes", "partitions", "acquired", "shares"),
    [(10, 2, 5, [2, 2]), (10, 2, 2, [5, 5]), (4, 2, 5, [2, 2]), (0, 2, 2, [0, 0])],
)
def test_partitions_share_the_bytes_of_a_fetch(
    max_bytes: int, partitions: int, acquired: int, shares: list[int]
) -> None:
    assert partition_max_bytes(max_bytes, partitions, acquired, ShareWorld().random) == shares


def test_bytes_that_are_left_over_or_too_few_go_to_any_partition() -> None:
    random = ShareWorld().random
    assert sorted(partition_max_bytes(11, 3, 3, random)) == [3, 3, 5]
    assert sorted(partition_max_bytes(2, 3, 3, random)) == [0, 1, 1]


def test_each_partition_is_the_first_one_in_turn() -> None:
    others = PARTITION._replace(partition=1)
    assert list(rotated([PARTITION, others], 0)) == [PARTITION, others]
    assert list(rotated([PARTITION, others], 1)) == [others, PARTITION]
