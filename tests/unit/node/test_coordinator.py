"""Any coordinator's runtime, context, writer and timers, with a made shard of counts."""

import logging
from typing import Final

import pytest
from tests.unit.node.counters import (
    COMMIT_TIMEOUT_MS,
    COUNTERS,
    COUNTERS_ID,
    LOAD_MS,
    PRODUCER,
    RETRIED,
    SILENCE_MS,
    TOO_LONG,
    UNKNOWN,
    Counters,
    CounterShard,
    batch,
    counted,
    tombstone,
)

from kvorum.coordinator.effects import Promise
from kvorum.coordinator.result import CoordinatorResult
from kvorum.metadata.api import RequestError
from kvorum.metadata.partition import Partitions
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.broker.coordinator.context import CoordinatorState
from kvorum.node.broker.coordinator.timers import RETRY_MS
from kvorum.wire.error_codes import ErrorCode

PARTITIONS_OF_NAMES: Final = {"a": 1, "b": 2, "c": 0}
"""The first letters have the hashes 97, 98 and 99; of three partitions."""


@pytest.fixture
def idle() -> Counters:
    """A broker that leads no partition yet."""
    return Counters()


@pytest.fixture
def node(idle: Counters) -> Counters:
    """A broker that leads its partition in epoch 0."""
    idle.lead()
    return idle


# Which coordinators there are.


def test_a_key_is_coordinated_by_the_leader_of_its_partition() -> None:
    node = Counters(partition_count=3)
    with pytest.raises(RequestError) as unknown:
        node.coordinators.partition_for("a")
    assert unknown.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.lead()
    for name, partition in PARTITIONS_OF_NAMES.items():
        assert node.coordinators.partition_for(name) == partition
        assert node.coordinators.context_for(name).partition is node.partitions[partition]
    assert len(list(node.coordinators.active_shards())) == 3


def test_a_partition_that_is_led_elsewhere_is_refused(idle: Counters) -> None:
    idle.lose(leader_epoch=0)
    assert idle.refusal() is ErrorCode.NOT_COORDINATOR
    assert not idle.coordinators.coordinates(0)
    idle.register(leader=1, leader_epoch=1)
    assert idle.coordinators.coordinates(0)
    idle.coordinators.close()
    assert idle.refusal() is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_partition_has_a_coordinator_as_soon_as_it_leads(idle: Counters) -> None:
    """It may lead later than the image says, as where its log got no descriptors at first."""
    led = idle.registration
    idle.partitions[0].make_follower(led._replace(leader=2))
    idle.publish(TopicImage(COUNTERS, COUNTERS_ID, Partitions((led,))))
    assert idle.refusal() is ErrorCode.NOT_COORDINATOR
    idle.publish()
    assert idle.refusal() is ErrorCode.NOT_COORDINATOR
    idle.partitions[0].make_leader(led, min_insync_replicas=1, now_ms=0)
    idle.publish()
    idle.run()
    assert idle.coordinators.has_loaded("a")


def test_a_partition_that_is_lost_before_it_leads_has_no_coordinator(idle: Counters) -> None:
    led = idle.registration
    idle.partitions[0].make_follower(led._replace(leader=2))
    idle.publish(TopicImage(COUNTERS, COUNTERS_ID, Partitions((led,))))
    idle.lose()
    regained = idle.registration._replace(leader=1, leader_epoch=2)
    idle.partitions[0].make_leader(regained, min_insync_replicas=1, now_ms=0)
    idle.publish()
    assert idle.refusal() is ErrorCode.NOT_COORDINATOR, "the image does not say so yet"


def test_a_higher_epoch_of_a_leader_keeps_its_shard(node: Counters) -> None:
    shard = node.shard
    node.register(leader_epoch=5)
    assert node.shard is shard
    assert node.context.leader_epoch == 5


def test_a_coordinator_that_loads_in_each_epoch_begins_again_with_what_the_log_has() -> None:
    node = Counters(loads_in_each_epoch=True)
    node.lead()
    former = node.shard
    node.hold()
    waiting = node.add("a")
    assert node.shard is former, "the epoch is the same"
    node.register(leader_epoch=5)
    assert waiting == [ErrorCode.NOT_COORDINATOR]
    assert node.refusal() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not node.coordinators.has_loaded("a")
    node.run()
    assert node.coordinators.has_loaded("a")
    assert (node.context.leader_epoch, node.shard.counts.get("a")) == (5, 1)


# Writes.


def test_an_answer_waits_for_its_commit_and_reads_see_what_is_committed(node: Counters) -> None:
    assert node.add("a", 2) == [2]
    node.hold()
    waiting = node.add("a", 3)
    newest = node.asked(lambda shard, _: shard.newest_count("a"))
    assert (waiting, newest) == ([], [])
    assert node.count("a") == 2
    node.release()
    assert (waiting, newest) == ([5], [5])
    assert node.count("a") == 5


def test_a_request_that_a_shard_refuses_writes_nothing(node: Counters) -> None:
    end = node.log.log_end_offset
    with pytest.raises(RequestError) as refused:
        node.add("a", -1)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert node.log.log_end_offset == end


def test_a_promise_is_kept_by_another_request(node: Counters) -> None:
    counts: list[int] = []
    promise = Promise(counts.append)
    assert node.asked(lambda shard, _: shard.wait("a", 3, promise)) == [None]
    node.hold()
    node.add("a", 2)
    assert counts == []
    node.add("a", 2)
    assert counts == [4], "effects do not wait for the commit"
    node.add("a", 2)
    assert counts == [4], "a promise is kept once"


def test_a_shard_that_has_changed_already_is_not_changed_by_its_record(node: Counters) -> None:
    node.hold()
    waiting = node.asked(lambda shard, _: shard.set_at_once("a", 7))
    assert node.shard.counts.get("a") == 7
    assert node.shard.replayed_offsets == []
    assert node.count("a") is None
    node.release()
    assert (waiting, node.count("a")) == ([7], 7)
    refused = node.asked(lambda shard, _: shard.set_at_once(TOO_LONG, 7))
    assert refused == [ErrorCode.MESSAGE_TOO_LARGE]
    assert node.shard.counts.get(TOO_LONG) is None, "what the log refuses is taken back"


def test_an_append_that_the_log_refuses_is_taken_back(node: Counters) -> None:
    reserved: list[int | None] = []
    node.add("a", 2)
    end = node.log.log_end_offset
    refused = node.asked(lambda shard, _: shard.reserve(TOO_LONG, Promise(reserved.append)))
    assert refused == [ErrorCode.MESSAGE_TOO_LARGE]
    assert reserved == [None], "the shard hears of it"
    assert dict(node.shard.counts.items()) == {"a": 2}
    assert node.log.log_end_offset == end
    assert node.shard.timeline.written_offset == end
    assert node.add("a", 1) == [3]


def test_a_shard_hears_of_the_commit_of_its_records(node: Counters) -> None:
    reserved: list[int | None] = []
    node.hold()
    waiting = node.asked(lambda shard, _: shard.reserve("a", Promise(reserved.append)))
    assert reserved == []
    node.release()
    assert (reserved, waiting) == ([1], [None])


def test_a_write_that_is_not_committed_in_time_is_refused_and_stands(node: Counters) -> None:
    reserved: list[int | None] = []
    node.hold()
    waiting = node.asked(lambda shard, _: shard.reserve("a", Promise(reserved.append)))
    node.run(COMMIT_TIMEOUT_MS - 1)
    assert waiting == []
    node.run(2)
    assert (waiting, reserved) == ([ErrorCode.REQUEST_TIMED_OUT], [None])
    node.release()
    assert (waiting, reserved) == ([ErrorCode.REQUEST_TIMED_OUT], [None]), "answered once"
    assert node.count("a") == 1


def test_records_that_are_not_atomic_fill_several_batches(node: Counters) -> None:
    names = [f"{number}-{'n' * 80}" for number in range(12)]
    for name in names:
        node.add(name)
    count = len(node.batches())
    assert node.asked(lambda shard, _: shard.remove(*names)) == [None]
    removals = node.batches()[count:]
    assert sum(one.record_count for one in removals) == len(names)
    assert len(removals) > 1
    assert all(one.size <= node.log.config.max_message_bytes for one in removals)
    assert node.shard.replayed_offsets == list(range(2 * len(names)))
    assert dict(node.shard.counts.items()) == {}


def test_a_batch_that_is_refused_takes_none_of_the_former_ones_back(node: Counters) -> None:
    node.add("a")
    node.add("b")
    end = node.log.log_end_offset
    refused = node.asked(lambda shard, _: shard.remove("a", TOO_LONG, "b"))
    assert refused == [ErrorCode.MESSAGE_TOO_LARGE]
    assert dict(node.shard.counts.items()) == {"b": 1}
    assert node.shard.timeline.written_offset == end + 1 == node.log.log_end_offset


def test_records_of_another_writer_have_the_shard_loaded_again(
    node: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    counts: list[int] = []
    former = node.shard
    node.add("a")
    node.asked(lambda shard, _: shard.wait("b", 3, Promise(counts.append)))
    node.write(batch(counted("c", 7), tombstone("a")))
    with caplog.at_level(logging.ERROR):
        refused = node.add("b")
    assert refused == [ErrorCode.NOT_COORDINATOR]
    assert "others have written" in caplog.text
    assert counts == [UNKNOWN], "who waits is answered"
    assert node.refusal() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    node.run()
    assert node.shard is not former
    # The log has the write that was refused.
    assert dict(node.shard.counts.items()) == {"c": 7, "b": 1}
    node.run(2 * SILENCE_MS)
    ended = [one.key for part in node.batches() for one in part.records() if one.value is None]
    assert ended == [tombstone(name).key_bytes() for name in "acb"], "former timers are off"


# Transactions.


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 5), (False, 3)])
def test_records_of_a_transaction_count_with_its_marker(
    node: Counters, expected: int, *, is_commit: bool
) -> None:
    node.add("a", 3)
    assert node.add_in_transaction("a", 2) == [5]
    assert node.count("a") == 3
    node.hold()
    ending = node.end_transaction(is_commit=is_commit)
    assert (ending, node.count("a")) == ([], 3)
    node.release()
    assert (ending, node.count("a")) == ([None], expected)
    _, data, end = node.batches()
    assert (data.producer_id, data.is_transactional) == (PRODUCER, True)
    assert (end.producer_id, end.is_control) == (PRODUCER, True)


# Timers.


def test_a_timer_fires_as_an_operation_and_is_replaced_by_its_key(node: Counters) -> None:
    node.add("a")
    node.run(SILENCE_MS - 1)
    node.add("a")
    node.run(SILENCE_MS - 1)
    assert node.count("a") == 2
    node.run(2)
    assert node.count("a") is None
    assert node.batches()[-1].record_count == 1
    node.run(10 * SILENCE_MS)
    assert len(node.batches()) == 3, "it fires once"


def test_a_timer_is_set_again_where_its_records_are_not_committed(node: Counters) -> None:
    node.add("a")
    node.add(RETRIED)
    node.hold()
    written = len(node.batches())
    node.run(SILENCE_MS + COMMIT_TIMEOUT_MS + 1)
    assert len(node.batches()) == written + 2
    node.run(RETRY_MS)
    assert len(node.batches()) == written + 3, "the other timer is not"
    node.release()
    node.run(10 * SILENCE_MS)
    assert len(node.batches()) == written + 3


def test_a_retried_timer_leaves_a_newer_one_of_its_key_alone(node: Counters) -> None:
    node.add(RETRIED)
    node.hold()
    node.run(SILENCE_MS + 1)
    node.asked(lambda shard, _: shard.add(RETRIED, 1))
    written = len(node.batches())
    node.run(COMMIT_TIMEOUT_MS + RETRY_MS)
    assert len(node.batches()) == written


def test_a_load_sets_the_timers_of_what_it_finds(idle: Counters) -> None:
    idle.write(batch(counted("a", 1)))
    idle.lead()
    idle.run(SILENCE_MS - 2 * LOAD_MS)
    assert idle.count("a") == 1
    idle.run(2 * LOAD_MS)
    assert idle.count("a") is None


# The end.


def test_a_coordinator_that_resigns_answers_all_and_acts_no_more(node: Counters) -> None:
    counts: list[int] = []
    reserved: list[int | None] = []
    context = node.context
    node.add("a")
    node.asked(lambda shard, _: shard.wait("a", 9, Promise(counts.append)))
    node.hold()
    waiting = node.asked(lambda shard, _: shard.reserve("b", Promise(reserved.append)))
    node.lose()
    assert waiting == [ErrorCode.NOT_COORDINATOR]
    assert (counts, reserved) == ([UNKNOWN], [None])
    assert context.state is CoordinatorState.CLOSED
    assert list(node.coordinators.active_shards()) == []
    end = node.log.log_end_offset
    node.run(2 * SILENCE_MS)
    assert node.log.log_end_offset == end, "its timers are off"
    with pytest.raises(RequestError):
        context.read(lambda shard: shard.count("a"))


def test_a_new_leadership_begins_with_what_the_log_has(node: Counters) -> None:
    node.add("a", 2)
    former = node.shard
    node.lose()
    node.register(leader=1, leader_epoch=2)
    node.run()
    assert node.shard is not former
    assert node.count("a") == 2


# Operations that no client waits for.


def test_an_operation_that_no_client_waits_for_is_done_after_the_load(
    idle: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    idle.write(batch(counted("a", 1), counted("b", 1)))
    idle.register(leader_epoch=0)
    idle.context.write_unasked(lambda shard, _: shard.remove("a"))
    assert len(idle.batches()) == 1
    idle.run()
    assert (idle.count("a"), idle.count("b")) == (None, 1)
    idle.context.write_unasked(lambda shard, _: shard.remove("b"))
    assert idle.count("b") is None
    context = idle.context
    idle.lose()
    context.write_unasked(lambda shard, _: shard.remove("c"))
    assert len(idle.batches()) == 3, "a coordinator that has resigned does nothing"
    assert caplog.text == ""


def test_the_failure_of_an_operation_that_no_client_waits_for_is_logged(
    node: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_shard: CounterShard, _now_ms: int) -> CoordinatorResult[None]:
        raise ValueError("a mistake")

    with caplog.at_level(logging.WARNING):
        node.context.write_unasked(lambda shard, _: shard.remove(TOO_LONG))
        node.hold()
        node.context.write_unasked(lambda shard, _: shard.remove("a"))
        assert caplog.text.count("An operation that no client waits for failed") == 1
        node.run(COMMIT_TIMEOUT_MS + 1)
        assert caplog.text.count("An operation that no client waits for failed") == 2
        node.context.write_unasked(fail)
    assert "ValueError: a mistake" in caplog.text
    node.release()
    assert node.add("a") == [1]
