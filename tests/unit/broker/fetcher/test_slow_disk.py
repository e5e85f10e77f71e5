"""Replicas on slow disks: what is not stored is not counted, read or answered."""

from collections.abc import Callable
from typing import Final

import pytest
from tests.unit.broker.fetcher.replicas import BACKOFF_MS, KEY, LAG_MAX_MS, ROOT, Replica, Replicas
from tests.unit.storage.topic_logs import NOW_MS, TOPIC_ID, log_in, managed, values_in

from kvorum.broker.fetch_isolation import IsolationLevel, readable_end
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.read_ahead import ReadAhead, read_ahead
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.errors import OffsetOutOfRangeError
from kvorum.storage.log import recent_batches
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.segment_list import SegmentList
from kvorum.wire.records import read_batches

REMOVALS: Final[list[tuple[str, Callable[[LocalLog], object]]]] = [
    ("replace", lambda log: log.replace_segments(log.segments[0], log.segments, now_ms=0)),
    ("delete_before", lambda log: log.increment_log_start_offset(2, now_ms=0)),
    ("truncate_to", lambda log: log.truncate_to(1, now_ms=0)),
]
"""The removals of batches from a log, each with its step in the log."""


@pytest.fixture
def world() -> Replicas:
    world = Replicas()
    world.lead(1)
    return world


def truncating(world: Replicas) -> Replica:
    """Return replica 1, whose thread is to truncate what it alone has once the test lets it."""
    one, two, _ = world.all.values()
    one.write(b"a")
    world.copy(1, 2, 3)
    one.write(b"only here")
    world.lead(2)
    one.threads.slow_down(lambda: one.fetch_from(two))
    return one


def test_a_leader_hands_out_and_counts_what_is_stored(world: Replicas) -> None:
    one, two, three = world.all.values()
    one.write_slowly(b"a")
    one.write(b"b")
    world.copy(1, 2, 3)
    assert two.values == [b"a"]
    assert one.partition.log.high_watermark == 1
    one.threads.release()
    world.copy(1, 2, 3)
    assert three.values == [b"a", b"b"]
    assert one.partition.log.high_watermark == 2


def test_a_lone_replicas_records_are_committed_once_they_are_stored(world: Replicas) -> None:
    one = world.all[1]
    world.alter(1, isr=(1,))
    one.partition.demand_leader().update_min_insync_replicas(1)
    one.write_slowly(b"a")
    one.write(b"b")
    assert one.partition.check_enough_replicas_reach_offset(2) is None
    one.threads.release()
    assert one.partition.log.high_watermark == 2
    assert readable_end(one.partition.log, IsolationLevel.READ_UNCOMMITTED) == 2


def test_those_who_wait_for_records_hear_when_they_are_stored(world: Replicas) -> None:
    one = world.all[1]
    ends: list[int] = []
    one.write_slowly(b"a")
    one.write(b"b")
    one.partition.watchers.add(lambda: ends.append(readable_end(one.partition.log, None)))
    assert ends == []
    one.threads.release()
    assert ends == [2]


def test_a_follower_fetches_again_once_what_it_got_is_stored(world: Replicas) -> None:
    one, two, _ = world.all.values()
    one.write(b"a")
    two.threads.slow_down(lambda: two.fetch_from(one))
    one.write(b"b")
    two.fetch_from(one)
    assert two.fetcher.fetch(world.now_ms, version=18, broker_epoch=two.broker.epoch()) is None
    assert list(two.fetcher.writes_behind()) == [two.partition.log.writes]
    two.threads.release()
    assert list(two.fetcher.writes_behind()) == []
    assert two.ask().request.topics[0].partitions[0].fetch_offset == 2


def test_a_follower_takes_over_the_leaders_offsets_as_far_as_it_has_stored(world: Replicas) -> None:
    one, two, _ = world.all.values()
    one.write(b"a")
    two.threads.slow_down(lambda: two.fetch_from(one))
    world.copy(1, 2, 3)
    world.now_ms += LAG_MAX_MS + 1
    world.alter(1, isr=(1, 3))
    one.write(b"b")
    world.copy(1, 3)
    one.partition.delete_records(1, now_ms=NOW_MS)
    two.fetch_from(one)
    log = two.partition.log
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1, 1, 2)
    two.threads.release()
    two.fetch_from(one)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1, 2, 2)
    assert two.problems == []


def test_a_follower_that_becomes_the_leader_counts_what_it_stores_later(world: Replicas) -> None:
    one, two, three = world.all.values()
    one.write(b"a")
    two.threads.slow_down(lambda: two.fetch_from(one))
    one.write(b"b")
    two.fetch_from(one)
    world.lead(2, isr=(2, 3))
    two.partition.demand_leader().update_min_insync_replicas(1)
    assert two.partition.demand_leader().log_end_offset == 1
    assert two.partition.demand_leader().epoch_start_offset == 2
    two.threads.release()
    assert two.partition.demand_leader().log_end_offset == 2
    world.copy(2, 3)
    assert three.values == [b"a", b"b"]
    assert two.partition.log.high_watermark == 2


def test_what_a_former_leadership_has_appended_is_committed_by_the_present_one_alone(
    world: Replicas,
) -> None:
    one, _, three = world.all.values()
    world.alter(1, isr=(1,))
    one.partition.demand_leader().update_min_insync_replicas(1)
    world.now_ms += LAG_MAX_MS + 1
    one.write_slowly(b"a")
    one.write(b"b")
    world.lead(2, known_by="12")
    world.lead(1)
    committed: list[int] = []
    one.partition.watchers.add(lambda: committed.append(one.partition.log.high_watermark))
    one.threads.release()
    assert one.partition.demand_leader().log_end_offset == 2
    assert committed == [1]
    world.copy(1, 2, 3)
    assert one.partition.log.high_watermark == 2
    assert three.values == [b"a", b"b"]


def test_records_that_a_disk_has_lost_are_never_committed(world: Replicas) -> None:
    one = world.all[1]
    world.alter(1, isr=(1,))
    one.partition.demand_leader().update_min_insync_replicas(1)
    one.write_slowly(b"a")
    one.write(b"b")
    one.files.fail("write", 1)
    told: list[bool] = []
    one.partition.watchers.add(lambda: told.append(one.partition.log.writes.has_failed))
    one.threads.release()
    assert told == [True]
    assert one.partition.log.high_watermark == 1
    assert one.partition.check_enough_replicas_reach_offset(2) is None


def test_a_crash_takes_nothing_that_was_committed(world: Replicas) -> None:
    one = world.all[1]
    world.alter(1, isr=(1,))
    one.partition.demand_leader().update_min_insync_replicas(1)
    one.write_slowly(b"a")
    one.write(b"b")
    left = one.files.after_process_crash()
    manager = managed([LogDirectory(ROOT, bytes(16), left, was_clean=False)], lambda _: TOPIC_ID)
    assert values_in(log_in(manager)) == [b"a"]
    assert one.partition.log.high_watermark == 1


def test_what_was_read_ahead_is_served_unless_something_was_removed(world: Replicas) -> None:
    partition = world.all[1].partition
    world.all[1].write(b"a", b"b")
    ahead = read_ahead(partition.log, 0, 1_000, end_offset=1)
    world.copy(1, 2, 3)
    served = partition.fetch_records(
        0, 1_000, isolation=IsolationLevel.READ_UNCOMMITTED, leader_epoch=-1, ahead=ahead
    )
    (first,) = read_batches(bytes(served.records))
    assert (first.base_offset, served.high_watermark) == (0, 2)
    partition.delete_records(1, now_ms=NOW_MS)
    again = partition.fetch_records(
        1, 1_000, isolation=IsolationLevel.READ_UNCOMMITTED, leader_epoch=-1, ahead=ahead
    )
    (second,) = read_batches(bytes(again.records))
    assert second.base_offset == 1


def test_an_error_that_a_thread_met_is_that_of_the_fetch(world: Replicas) -> None:
    partition = world.all[1].partition
    ahead = read_ahead(partition.log, 7, 1_000, end_offset=7)
    with pytest.raises(OffsetOutOfRangeError):
        partition.fetch_records(
            0, 1_000, isolation=IsolationLevel.READ_UNCOMMITTED, leader_epoch=-1, ahead=ahead
        )


def test_a_fetch_of_old_records_does_not_count_them_in_the_owners_thread(
    world: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_batches, "KEPT_MAX", 2)
    one = world.all[1]
    one.write(b"a", b"b", b"c")
    log = one.partition.log.local_log
    assert not log.is_at_hand(0, end_offset=3)
    assert log.is_at_hand(2, end_offset=3)
    assert one.partition.bytes_available(0, 1_000, isolation=None, wanted=900) == 900
    available = one.partition.bytes_available(2, 1_000, isolation=None, wanted=900)
    assert available is not None
    assert 0 < available < 900


def test_a_truncation_is_done_by_a_thread_and_the_follower_fetches_after_it(
    world: Replicas,
) -> None:
    one, two, three = world.all.values()
    one.write(b"a")
    world.copy(1, 2, 3)
    one.write(b"only here")
    world.lead(2, known_by="23")
    two.write(b"b")
    world.copy(2, 3)
    world.alter(2, isr=(2, 3))
    one.threads.slow_down(lambda: one.fetch_from(two))
    log = one.partition.log.local_log
    assert (log.is_truncating, one.end_offset) == (True, 2)
    with pytest.raises(LeaderRefusesError):
        one.partition.fetch_records(
            0,
            1_000,
            isolation=IsolationLevel.READ_UNCOMMITTED,
            leader_epoch=-1,
            is_leader_needed=False,
        )
    assert one.fetcher.fetch(world.now_ms, version=18, broker_epoch=one.broker.epoch()) is None
    one.threads.release()
    assert (log.is_truncating, one.end_offset) == (False, 1)
    one.fetch_from(two)
    one.threads.release()
    assert one.values == three.values == [b"a", b"b"]


def test_a_leader_that_does_not_answer_during_a_truncation_changes_nothing_about_its_end(
    world: Replicas,
) -> None:
    one = truncating(world)
    one.fetcher.on_failure(world.now_ms)
    world.now_ms += BACKOFF_MS
    # Another thread has done it, and the owner has yet to hear of it.
    one.partition.log.local_log.flush()
    assert one.fetcher.fetch(world.now_ms, version=18, broker_epoch=one.broker.epoch()) is None
    one.threads.release()
    (wish,) = one.ask().request.topics[0].partitions
    assert wish.fetch_offset == 1


def test_a_truncation_that_fails_in_a_thread_ends_the_fetches(world: Replicas) -> None:
    one = truncating(world)
    one.files.fail("truncate", 1)
    one.threads.release()
    assert one.problems == ["The log cannot be truncated"]
    assert one.fetcher.failed == {KEY}


def test_the_end_of_a_truncation_changes_no_partition_that_is_not_fetched_any_more(
    world: Replicas,
) -> None:
    one = truncating(world)
    one.fetcher.remove(KEY)
    one.threads.release()
    assert one.fetcher.keys == frozenset()
    assert one.values == world.all[3].values


def test_a_read_ahead_that_meets_a_truncation_does_not_count(
    world: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = world.all[1].partition.log

    def truncated_meanwhile(*_: object, **__: object) -> None:
        log.local_log.removal_count += 1
        raise IndexError

    monkeypatch.setattr(log, "read_range", truncated_meanwhile)
    assert not read_ahead(log, 0, 1_000, end_offset=0).counts_for(log)


@pytest.mark.parametrize(("step", "remove"), REMOVALS, ids=["compaction", "deletion", "truncation"])
def test_a_read_ahead_from_within_a_removal_does_not_count(
    step: str,
    remove: Callable[[LocalLog], object],
    world: Replicas,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have found a file closed whose segment was still in its place."""
    one = world.all[1]
    one.write(b"a", b"b", b"c")
    log = one.partition.log
    met: list[ReadAhead] = []

    def read_meanwhile(*_: object, **__: object) -> int:
        met.append(read_ahead(log, 0, 1_000, end_offset=1))
        return 0

    monkeypatch.setattr(SegmentList, step, read_meanwhile)
    remove(log.local_log)
    (ahead,) = met
    assert not ahead.counts_for(log)


def test_a_defect_in_a_read_ahead_is_not_hidden(
    world: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = world.all[1].partition.log

    def broken(*_: object, **__: object) -> None:
        raise IndexError

    monkeypatch.setattr(log, "read_range", broken)
    with pytest.raises(IndexError):
        read_ahead(log, 0, 1_000, end_offset=0)
