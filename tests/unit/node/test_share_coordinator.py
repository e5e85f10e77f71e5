"""The share coordinator of a broker: its leadership, its commits, and its work on its own."""

import pytest
from tests.unit.node.share_states import (
    COLD_MS,
    LOAD_MS,
    PRUNE_MS,
    STATE,
    TOPIC,
    WRITE_TIMEOUT_MS,
    ShareStates,
    write_request,
)

from kvorum.wire.error_codes import ErrorCode

DEFAULTS = ErrorCode.NOT_COORDINATOR.default_message
COMMIT_MS = 50
"""The time that a commit takes."""


@pytest.fixture
def idle() -> ShareStates:
    """A broker that leads no partition yet."""
    return ShareStates()


@pytest.fixture
def node(idle: ShareStates) -> ShareStates:
    """A broker that leads its partition, in a cluster without share groups."""
    idle.lead()
    return idle


def test_the_state_is_where_its_partition_is_led(node: ShareStates) -> None:
    node.initialize(start_offset=4)
    node.asked(node.service.write_state, write_request(6, 0))
    node.lose(leader_epoch=1)
    refused = node.outcome(node.service.write_state, write_request(7, 0))
    assert refused.error_code == ErrorCode.NOT_COORDINATOR
    assert refused.error_message == f"Unable to write share group state: {DEFAULTS}"
    node.lead(leader_epoch=2)
    assert node.start_offset() == 6


def test_a_write_changes_neither_epoch(node: ShareStates) -> None:
    node.initialize(start_offset=4)
    later = write_request(6, 0, state_epoch=2, leader_epoch=3)
    assert node.outcome(node.service.write_state, later).error_code == ErrorCode.NONE
    read = node.read(leader_epoch=0)
    assert (read.error_code, read.state_epoch, read.start_offset) == (ErrorCode.NONE, 0, 6)


def test_a_write_for_a_state_that_was_begun_again_is_refused(node: ShareStates) -> None:
    node.initialize(start_offset=4, state_epoch=2)
    refused = node.outcome(node.service.write_state, write_request(6, 0, state_epoch=1))
    assert refused.error_code == ErrorCode.FENCED_STATE_EPOCH
    assert node.start_offset() == 4


def test_a_read_without_a_leader_epoch_is_invalid_and_fences_no_leader(node: ShareStates) -> None:
    node.initialize(start_offset=4)
    assert node.read(leader_epoch=-1).error_code == ErrorCode.INVALID_REQUEST
    assert node.read(leader_epoch=0).error_code == ErrorCode.NONE


def test_a_coordinator_that_is_closed_is_not_available(node: ShareStates) -> None:
    node.service.close()
    refused = node.initialize()
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refused.error_message == "Share coordinator is not available."


def test_each_partition_of_a_request_is_answered_when_all_are_committed(node: ShareStates) -> None:
    node.initialize(0)
    node.hold()
    answers = node.asked(node.service.write_state, write_request(3, 0, 1))
    assert answers == []
    node.release()
    node.run()
    (answer,) = answers
    assert not isinstance(answer, Exception)
    (topic,) = answer.results
    codes = {one.partition: one.error_code for one in topic.partitions}
    assert codes == {0: ErrorCode.NONE, 1: ErrorCode.INVALID_REQUEST}


def test_a_write_that_is_not_committed_in_time_is_refused(node: ShareStates) -> None:
    node.initialize()
    node.hold()
    answers = node.asked(node.service.write_state, write_request(3, 0))
    node.run(WRITE_TIMEOUT_MS)
    (answer,) = answers
    assert not isinstance(answer, Exception)
    assert answer.results[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_share_partitions_of_a_deleted_topic_are_forgotten(node: ShareStates) -> None:
    node.initialize(0)
    node.initialize(1)
    node.publish(without=TOPIC)
    node.run()
    (shard,) = node.service.runtime.active_shards()
    assert shard.states.is_empty()
    assert [one.value for batch in node.batches() for one in batch.records()][2:] == [None, None]


def test_records_before_the_oldest_snapshot_are_deleted_while_there_are_share_groups(
    node: ShareStates,
) -> None:
    node.initialize(0)
    node.initialize(1)
    for start_offset in range(1, 4):
        # Two updates, then a snapshot.
        node.asked(node.service.write_state, write_request(start_offset, 0, 1))
    before = node.offsets_in_log()
    node.run(2 * PRUNE_MS)
    assert node.offsets_in_log() == before == list(range(8))
    node.finalize_share_version(1)
    node.run(PRUNE_MS - LOAD_MS)
    assert node.offsets_in_log() == before
    assert not node.service.pruned_offsets
    node.run(2 * LOAD_MS)
    assert node.log.log_start_offset == 6
    assert node.service.pruned_offsets == {(STATE, 0): 6}
    node.finalize_share_version(0)
    node.initialize(0)
    node.initialize(1)
    node.run(2 * PRUNE_MS)
    assert node.log.log_start_offset == 6


def test_a_coordinator_that_is_new_here_has_deleted_nothing_yet(node: ShareStates) -> None:
    node.initialize(0)
    node.finalize_share_version(1)
    node.run(COLD_MS + PRUNE_MS)
    assert node.service.pruned_offsets == {(STATE, 0): 1}
    node.lose(leader_epoch=1)
    assert not node.service.pruned_offsets
    node.lead(leader_epoch=2)
    assert not node.service.pruned_offsets


def test_a_share_partition_that_does_not_change_gets_a_snapshot_now_and_then(
    node: ShareStates,
) -> None:
    node.initialize(0)
    node.finalize_share_version(1)
    node.run(COLD_MS + LOAD_MS)
    assert node.log.local_log.log_end_offset == 2
    # While nothing changes there is no other one.
    node.run(3 * COLD_MS)
    assert node.log.local_log.log_end_offset == 2
    assert node.log.log_start_offset == 1


def test_writes_are_counted_and_their_requests_are_timed(node: ShareStates) -> None:
    node.initialize(0)
    metrics = node.service.metrics
    assert metrics.write_count == 0
    node.hold()
    answers = node.asked(node.service.write_state, write_request(3, 0, 1))
    node.run(COMMIT_MS)
    node.release()
    node.run()
    assert len(answers) == 1
    now_ms = node.events.now_ms
    # The refusal for the second partition counts, as in Kafka.
    assert metrics.write_count == 2
    assert metrics.writes.rate_per_second(now_ms) > 0
    assert metrics.write_times_ms.maximum(now_ms) >= COMMIT_MS
    node.read(leader_epoch=0)
    assert metrics.write_count == 2
    node.read(leader_epoch=1)
    assert metrics.write_count == 3
