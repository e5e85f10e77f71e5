"""The batches that the operations of a coordinator share: what is in one, and what ends with it."""

import logging

import pytest
from tests.unit.node.counters import COMMIT_TIMEOUT_MS, TOO_LONG, Counters, batch, counted

from kvorum.coordinator.effects import Promise
from kvorum.node.broker.coordinator.linger import ADAPTIVE
from kvorum.storage.errors import DiskError
from kvorum.storage.log.local_log import LocalLog
from kvorum.wire.error_codes import ErrorCode


@pytest.fixture
def sharing() -> Counters:
    """A broker whose operations of one turn share a batch."""
    return led(append_linger_ms=ADAPTIVE)


def led(append_linger_ms: int) -> Counters:
    node = Counters(append_linger_ms=append_linger_ms)
    node.lead()
    return node


def sizes(node: Counters) -> list[tuple[int, int]]:
    """Return the first offset and the number of records of each batch."""
    return [(one.base_offset, one.record_count) for one in node.batches()]


def test_operations_of_a_turn_share_a_batch_and_are_answered_after_it(sharing: Counters) -> None:
    waiting = [sharing.add("a", 1), sharing.add("b", 2), sharing.add("a", 3)]
    newest = sharing.asked(lambda shard, _: shard.newest_count("a"))
    assert [*waiting, newest] == [[], [], [], []]
    assert sharing.log.log_end_offset == 0
    assert dict(sharing.shard.counts.items()) == {"a": 4, "b": 2}, "the next operation sees them"
    assert sharing.count("a") is None, "a read does not"
    sharing.run(0)
    assert [*waiting, newest] == [[1], [2], [4], [4]]
    assert sizes(sharing) == [(0, 3)]
    assert sharing.shard.replayed_offsets == [0, 1, 2]
    sharing.add("a", 1)
    sharing.run(0)
    assert sizes(sharing) == [(0, 3), (3, 1)]
    (first, _) = sharing.batches()
    assert [one.offset for one in first.records()] == [0, 1, 2]
    assert (first.base_sequence, first.producer_id, first.is_transactional) == (0, -1, False)


def test_an_operation_of_a_shared_batch_waits_for_the_high_watermark(sharing: Counters) -> None:
    sharing.hold()
    waiting = [sharing.add("a"), sharing.add("b")]
    sharing.run(0)
    newest = sharing.asked(lambda shard, _: shard.newest_count("a"))
    assert (sizes(sharing), waiting, newest) == ([(0, 2)], [[], []], [])
    sharing.release()
    assert (waiting, newest, sharing.count("b")) == ([[1], [1]], [1], 1)


def test_each_operation_of_a_batch_has_its_own_time() -> None:
    node = led(append_linger_ms=COMMIT_TIMEOUT_MS + 100)
    first = node.add("a")
    node.run(COMMIT_TIMEOUT_MS - 50)
    second = node.add("a")
    node.run(51)
    assert (first, second, sizes(node)) == ([ErrorCode.REQUEST_TIMED_OUT], [], [])
    node.run(100)
    assert (first, second) == ([ErrorCode.REQUEST_TIMED_OUT], [2])
    assert (sizes(node), node.count("a")) == ([(0, 2)], 2), "what is late stands all the same"


def test_operations_end_one_after_the_other_if_nothing_is_committed(sharing: Counters) -> None:
    sharing.hold()
    first = sharing.add("a")
    sharing.run(COMMIT_TIMEOUT_MS - 50)
    second = sharing.add("a")
    sharing.run(51)
    assert (first, second) == ([ErrorCode.REQUEST_TIMED_OUT], [])
    sharing.run(COMMIT_TIMEOUT_MS)
    assert second == [ErrorCode.REQUEST_TIMED_OUT]


def test_a_batch_waits_for_as_long_as_it_is_set() -> None:
    node = led(append_linger_ms=20)
    first = node.add("a")
    node.run(19)
    second = node.add("a")
    assert (first, second, sizes(node)) == ([], [], [])
    node.run(1.1)
    assert (first, second, sizes(node)) == ([1], [2], [(0, 2)])
    node.add("a")
    node.run(19)
    assert sizes(node) == [(0, 2)], "the time of a batch begins with its first operation"
    node.add_in_transaction("a")
    node.run(1.1)
    node.add("a")
    node.run(19)
    assert sizes(node) == [(0, 2), (2, 1), (3, 1)], "it ends with the batch"
    node.run(1.1)
    assert sizes(node) == [(0, 2), (2, 1), (3, 1), (4, 1)]


def test_a_batch_that_others_must_not_wait_for_is_appended_at_once() -> None:
    node = led(append_linger_ms=0)
    assert (node.add("a"), node.add("a")) == ([1], [2])
    assert sizes(node) == [(0, 1), (1, 1)]


def test_a_refused_batch_takes_back_all_of_its_operations(
    sharing: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserved: list[int | None] = []
    sharing.add("a", 5)
    sharing.run(0)
    former = sharing.add("a")
    waiting = [
        former,
        sharing.asked(lambda shard, _: shard.reserve("a", Promise(reserved.append))),
        sharing.asked(lambda shard, _: shard.set_at_once("b", 7)),
        sharing.asked(lambda shard, _: shard.newest_count("b")),
    ]
    with monkeypatch.context() as full:
        full.setattr(LocalLog, "append_batch", refuse_to_append)
        sharing.run(0)
    assert waiting == [[ErrorCode.KAFKA_STORAGE_ERROR]] * 4
    assert reserved == [None], "the shard hears of it"
    assert dict(sharing.shard.counts.items()) == {"a": 5}
    assert sharing.shard.timeline.written_offset == 1 == sharing.log.log_end_offset
    again = sharing.add("a")
    sharing.run(0)
    assert (again, sizes(sharing)) == ([6], [(0, 1), (1, 1)])


def refuse_to_append(log: LocalLog, *_: object) -> None:
    raise DiskError("no space", errno=None, file=log.directory)


def test_an_operation_that_finds_no_room_begins_a_batch(sharing: Counters) -> None:
    names = [f"{number}-{'n' * 80}" for number in range(12)]
    waiting = [sharing.add(name) for name in names]
    assert waiting[0] == [1], "the first batch was full"
    sharing.run(0)
    assert waiting == [[1]] * len(names)
    assert sum(count for _, count in sizes(sharing)) == len(names)
    assert 1 < len(sizes(sharing)) < len(names)
    assert all(one.size <= sharing.log.config.max_message_bytes for one in sharing.batches())


def test_an_operation_whose_records_are_too_large_takes_no_other_with_it(
    sharing: Counters,
) -> None:
    before = sharing.add("a")
    too_large = sharing.add(TOO_LONG)
    after = sharing.add("a")
    assert too_large == [ErrorCode.MESSAGE_TOO_LARGE]
    sharing.run(0)
    assert (before, after, sizes(sharing)) == ([1], [2], [(0, 1), (1, 1)])


def test_an_operation_fails_with_the_batch_that_it_had_to_wait_for(
    sharing: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sharing.add("a")
    with monkeypatch.context() as full:
        full.setattr(LocalLog, "append_batch", refuse_to_append)
        inside = sharing.add_in_transaction("a")
    assert (before, inside) == ([ErrorCode.KAFKA_STORAGE_ERROR], [ErrorCode.KAFKA_STORAGE_ERROR])
    assert dict(sharing.shard.pending.items()) == {}
    again = sharing.add("a")
    sharing.run(0)
    assert (again, sizes(sharing)) == ([1], [(0, 1)])


def test_a_transaction_and_its_marker_keep_their_places(sharing: Counters) -> None:
    before = sharing.add("a")
    inside = sharing.add_in_transaction("a", 10)
    between = sharing.add("b")
    ending = sharing.end_transaction(is_commit=True)
    after = sharing.add("b")
    sharing.run(0)
    assert [before, inside, between, ending, after] == [[1], [11], [1], [None], [2]]
    kinds = [(one.is_transactional, one.is_control) for one in sharing.batches()]
    assert kinds == [(False, False), (True, False), (False, False), (True, True), (False, False)]
    assert (sharing.count("a"), sharing.count("b")) == (11, 2)


def test_an_open_batch_ends_with_the_leadership(sharing: Counters) -> None:
    shard = sharing.shard
    reserved: list[int | None] = []
    waiting = [
        sharing.add("a"),
        sharing.asked(lambda shard, _: shard.reserve("a", Promise(reserved.append))),
    ]
    sharing.lose()
    assert (waiting, reserved) == ([[ErrorCode.NOT_COORDINATOR]] * 2, [None])
    assert dict(shard.counts.items()) == {}
    sharing.run()
    assert sizes(sharing) == [], "nothing is appended later"


def test_records_of_another_writer_fail_an_open_batch(
    sharing: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = [sharing.add("a"), sharing.add("b")]
    sharing.write(batch(counted("c", 7)))
    sharing.release()
    assert sharing.count("a") is None, "its high watermark is not ours"
    with caplog.at_level(logging.ERROR):
        sharing.run()
    assert waiting == [[ErrorCode.NOT_COORDINATOR]] * 2
    assert "others have written" in caplog.text
    # The log has the writes that were refused.
    assert dict(sharing.shard.counts.items()) == {"c": 7, "a": 1, "b": 1}
