"""Records that are rejected or delivered too often, on their way to the dead-letter queue."""

import pytest
from tests.unit.node.share_fetch_world import BOB, LOCK_MS, ShareWorld, acknowledged

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType
from kvorum.broker.share_partition.state_write import DeadLetterCause
from kvorum.wire.error_codes import ErrorCode

DELIVERIES_MAX = 5
ARCHIVING, ARCHIVED = 3, 4
REJECTED = DeadLetterCause.CLIENT_REJECT


@pytest.fixture
def world() -> ShareWorld:
    """Three committed records of a group that names a dead-letter queue."""
    world = ShareWorld()
    world.name_dead_letter_queue()
    world.write(b"a", b"b", b"c")
    return world


def test_a_rejected_record_is_archived_once_it_is_in_the_queue(world: ShareWorld) -> None:
    world.dead_letters.is_held = True
    world.fetch()
    rejected = world.acknowledging(0, 0, kind=AcknowledgeType.REJECT)
    assert acknowledged(rejected).code is ErrorCode.NONE
    assert world.dead_letters.asked == [(0, 0, 1, REJECTED)]
    assert world.keeper.batches == [(0, 0, ARCHIVING, 1)]
    world.dead_letters.release()
    world.run()
    assert world.keeper.batches[1:] == [(0, 0, ARCHIVED, 1)]


def test_records_that_come_there_during_a_write_are_archived_together(world: ShareWorld) -> None:
    world.dead_letters.is_held = True
    world.fetch()
    for offset in (0, 1, 2):
        world.acknowledging(offset, offset, kind=AcknowledgeType.REJECT)
    before = len(world.keeper.written)
    world.keeper.is_held = True
    world.dead_letters.release()
    world.run()
    world.keeper.release()
    world.run()
    written = [
        [one.first_offset for one in data.state_batches] for data in world.keeper.written[before:]
    ]
    assert written == [[0], [1, 2]]


def test_a_record_that_was_delivered_too_often_goes_there(world: ShareWorld) -> None:
    while world.fetch().offsets:
        world.run(for_ms=LOCK_MS + 50)
    cause = DeadLetterCause.DELIVERY_COUNT_EXCEEDED
    asked = [(offset, offset, DELIVERIES_MAX, cause) for offset in (0, 1, 2)]
    assert sorted(world.dead_letters.asked, key=str) == asked


def test_a_record_is_archived_even_if_it_does_not_come_there(
    world: ShareWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.dead_letters.problem = "there is no topic dlq.orders"
    world.fetch()
    world.acknowledging(1, 1, kind=AcknowledgeType.REJECT)
    assert world.keeper.batches == [(1, 1, ARCHIVING, 1), (1, 1, ARCHIVED, 1)]
    (line,) = caplog.messages
    assert "are not in the dead-letter queue" in line
    assert "dlq.orders" in line


def test_what_a_leader_could_not_copy_is_left_to_the_next_one(world: ShareWorld) -> None:
    world.dead_letters.is_held = True
    world.dead_letters.problem = "the broker stops"
    world.fetch()
    world.acknowledging(0, 0, kind=AcknowledgeType.REJECT)
    world.manager.close()
    world.dead_letters.release()
    world.run()
    assert world.keeper.batches == [(0, 0, ARCHIVING, 1)]
    world.dead_letters.is_held = False
    world.dead_letters.problem = None
    world.new_manager()
    assert world.fetch(BOB).offsets == [1, 2]
    assert world.dead_letters.asked == 2 * [(0, 0, 1, REJECTED)]
    assert world.keeper.batches[1:] == [(0, 0, ARCHIVED, 1)]


def test_a_group_without_a_queue_archives_at_once() -> None:
    world = ShareWorld()
    world.write(b"a")
    world.fetch()
    world.acknowledging(0, 0, kind=AcknowledgeType.REJECT)
    assert world.keeper.batches == [(0, 0, ARCHIVED, 1)]
    assert world.dead_letters.asked == []
