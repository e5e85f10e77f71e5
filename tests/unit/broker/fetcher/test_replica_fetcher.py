"""Followers that fetch, truncate and wait; many of the cases are bugs that Kafka once had."""

from errno import EMFILE
from functools import partial

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import Fault
from tests.unit.broker.fetcher.replicas import BACKOFF_MS, KEY, LAG_MAX_MS, Replicas
from tests.unit.broker.partition_leader.leader_under_test import accepted
from tests.unit.storage.topic_logs import NOW_MS, batch_of, sent

from kvorum.broker.fetcher.replica_fetcher import Fetch, OffsetSearch
from kvorum.broker.partition_leader.outcomes import Refused
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsResponse
from kvorum.wire.records import RecordData


@pytest.fixture
def world() -> Replicas:
    world = Replicas()
    world.lead(1)
    return world


def data_of(response: FetchResponse) -> FetchResponse.PartitionData:
    return response.responses[0].partitions[0]


def wish_of(fetch: Fetch) -> FetchRequest.FetchPartition:
    (wish,) = fetch.request.topics[0].partitions
    return wish


def test_a_follower_gets_records_and_one_fetch_later_what_is_committed(world: Replicas) -> None:
    one, two, three = world.all.values()
    one.write(b"a", b"b")
    two.fetch_from(one)
    assert two.values == [b"a", b"b"]
    assert (one.partition.log.high_watermark, two.partition.log.high_watermark) == (0, 0)
    three.fetch_from(one)
    two.fetch_from(one)
    three.fetch_from(one)
    assert one.partition.log.high_watermark == 2
    two.fetch_from(one)
    assert two.partition.log.high_watermark == 2


def test_a_new_epoch_begins_with_what_the_log_has_then(world: Replicas) -> None:
    """KAFKA-13266: not where the fetches of the epoch before had come to."""
    one, two, _ = world.all.values()
    one.write(b"a", b"b")
    two.fetch_from(one)
    two.partition.log.truncate_to(1, now_ms=NOW_MS)
    two.fetcher.add(two.partition, world.leader_epoch + 1)
    assert wish_of(two.ask()).fetch_offset == 1


def test_what_only_a_former_leader_has_is_truncated(world: Replicas) -> None:
    """KIP-101, KAFKA-6361: by the epochs, not by the high watermark, which may lag."""
    one, two, _ = world.all.values()
    one.write(b"a", b"b")
    world.copy(1, 2, 3)
    one.write(b"lost", b"lost as well")
    world.lead(2)
    two.write(b"c")
    world.copy(2, 1, 3)
    assert one.values == two.values == [b"a", b"b", b"c"]
    assert one.partition.log.local_log.epoch_starts == two.partition.log.local_log.epoch_starts


def test_a_follower_keeps_what_is_above_its_high_watermark(world: Replicas) -> None:
    """KIP-101, the first scenario: a restarted follower has a high watermark that lags."""
    one, two, three = world.all.values()
    one.write(b"a", b"b")
    for _ in range(2):
        two.fetch_from(one)
        three.fetch_from(one)
    assert two.partition.log.high_watermark < 2
    world.lead(3)
    two.ask()
    # The leader does not live to answer.
    world.lead(2)
    assert two.values == [b"a", b"b"]


def test_a_log_that_diverges_in_two_epochs_is_truncated_step_by_step(world: Replicas) -> None:
    """KIP-279, KAFKA-7164: two fast changes of the leader while a replica is away."""
    one, two, three = world.all.values()
    one.write(b"a")
    world.copy(1, 2, 3)
    world.lead(2, known_by="2")
    two.write(b"b", b"c")
    world.lead(1, known_by="1")
    one.write(b"only 1", b"only 1 as well")
    world.lead(2)
    two.write(b"d")
    world.copy(2, 1, 3)
    world.copy(2, 1, 3)
    assert one.values == two.values == three.values == [b"a", b"b", b"c", b"d"]
    assert one.partition.log.local_log.epoch_starts == two.partition.log.local_log.epoch_starts


def test_an_epoch_without_records_is_forgotten_with_a_truncation(world: Replicas) -> None:
    """KAFKA-10706: the end of the log is where the truncation goes, and no record is removed."""
    one, two, _ = world.all.values()
    one.write(b"a")
    world.copy(1, 2, 3)
    world.lead(3, known_by="3")
    world.lead(2)
    two.write(b"b")
    three = world.all[3]
    assert [entry.epoch for entry in three.partition.log.local_log.epoch_starts] == [0, 1]
    world.copy(2, 1, 3)
    assert [entry.epoch for entry in three.partition.log.local_log.epoch_starts] == [0, 2]
    assert three.values == [b"a", b"b"]


def test_an_answer_of_an_earlier_leader_epoch_is_dropped(world: Replicas) -> None:
    """KAFKA-18991: the log may have been truncated since, and the offset be the same."""
    one, two, three = world.all.values()
    one.write(b"a")
    world.copy(1, 2, 3)
    one.write(b"lost")
    fetch = two.ask()
    late = one.serve(fetch.request)
    world.lead(3)
    two.take(fetch, late, one)
    assert two.values == [b"a"]
    three.write(b"b")
    world.copy(3, 1, 2)
    assert two.values == [b"a", b"b"]


def test_an_answer_to_an_earlier_offset_is_dropped(world: Replicas) -> None:
    one, two, _ = world.all.values()
    one.write(b"a")
    fetch = two.ask()
    response = one.serve(fetch.request)
    two.take(fetch, response, one)
    two.take(fetch, response, one)
    assert (two.values, two.problems) == ([b"a"], [])


def test_an_answer_about_a_partition_that_is_no_longer_fetched_is_dropped(world: Replicas) -> None:
    one, two, _ = world.all.values()
    one.write(b"a")
    fetch = two.ask()
    two.fetcher.remove(KEY)
    two.take(fetch, one.serve(fetch.request), one)
    assert two.values == []


def test_batches_of_an_epoch_that_was_not_asked_for_are_left_out(world: Replicas) -> None:
    """KAFKA-18723."""
    two = world.all[2]
    fetch = two.ask()
    response = world.all[1].serve(fetch.request)
    data_of(response).records = make_batch(0, epoch=0) + make_batch(1, epoch=1)
    two.take(fetch, response, world.all[1])
    assert two.values == [b"value"]
    assert wish_of(two.ask()).fetch_offset == 1


def test_an_answer_without_records_keeps_the_last_fetched_epoch(world: Replicas) -> None:
    """KAFKA-15510."""
    one, two, _ = world.all.values()
    one.write(b"a")
    world.copy(1, 2)
    world.lead(3, isr=(2, 3))
    assert wish_of(two.ask()).last_fetched_epoch == 0
    world.lead(1)
    for _ in range(3):
        two.fetch_from(one)
        wish = wish_of(two.ask())
        assert (wish.last_fetched_epoch, wish.fetch_offset) == (0, 1)


def test_the_high_watermark_of_a_diverging_answer_is_not_taken(world: Replicas) -> None:
    """KAFKA-14704: it is about the leader's log, which the next fetch makes sure of."""
    one, two, three = world.all.values()
    one.write(b"a")
    for _ in range(2):
        three.fetch_from(one)
    one.write(b"b", b"c")
    two.fetch_from(one)
    world.lead(3)
    three.write(b"d")
    fetch = two.ask()
    response = three.serve(fetch.request)
    data = data_of(response)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)
    data.high_watermark = 3
    two.take(fetch, response, three)
    assert (two.end_offset, two.partition.log.high_watermark) == (1, 0)


def test_a_fenced_follower_waits_for_another_leader_epoch(world: Replicas) -> None:
    """KIP-320: it would be fenced again."""
    one, two, _ = world.all.values()
    world.lead(1, known_by="13")
    two.fetch_from(one)
    assert two.fetcher.keys == frozenset()
    assert two.fetcher.failed == {KEY}
    world.lead(1)
    assert two.fetcher.failed == set()
    one.write(b"a")
    two.fetch_from(one)
    assert two.values == [b"a"]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_follower_waits_after_an_error(world: Replicas, code: ErrorCode) -> None:
    one, two, _ = world.all.values()
    one.write(b"a")
    fetch = two.ask()
    response = one.serve(fetch.request)
    data_of(response).error_code = code
    two.take(fetch, response, one)
    assert two.values == []
    assert two.fetcher.fetch(world.now_ms, version=18, broker_epoch=1) is None
    assert two.fetcher.next_due_ms(world.now_ms) == world.now_ms + BACKOFF_MS
    world.now_ms += BACKOFF_MS
    two.fetch_from(one)
    assert two.values == [b"a"]


def test_corrupt_records_are_fetched_again_later(world: Replicas) -> None:
    one, two, _ = world.all.values()
    one.write(b"a")
    fetch = two.ask()
    response = one.serve(fetch.request)
    data = data_of(response)
    records = bytearray(data.records or b"")
    records[-1] ^= 1
    data.records = bytes(records)
    two.take(fetch, response, one)
    assert two.values == []
    assert "corrupt" in two.problems[0]
    world.now_ms += BACKOFF_MS
    two.fetch_from(one)
    assert two.values == [b"a"]


def test_records_for_which_there_was_no_descriptor_are_fetched_again_later(
    world: Replicas,
) -> None:
    """The disk is sound: the replica need not wait for another leader epoch."""
    one, two, _ = world.all.values()
    one.write(b"a")
    two.files.faults = [Fault("write", 1, error=EMFILE)]
    two.fetch_from(one)
    assert two.values == []
    assert two.fetcher.failed == set()
    assert "limit of open files" in two.problems[0]
    assert two.fetcher.fetch(world.now_ms, version=18, broker_epoch=1) is None
    world.now_ms += BACKOFF_MS
    two.fetch_from(one)
    assert two.values == [b"a"]


def test_a_lost_connection_delays_every_partition(world: Replicas) -> None:
    two = world.all[2]
    two.ask()
    two.fetcher.on_failure(world.now_ms)
    assert two.fetcher.fetch(world.now_ms, version=18, broker_epoch=1) is None
    world.now_ms += BACKOFF_MS
    assert two.ask().asked.keys() == {KEY}


def test_a_follower_far_behind_begins_where_the_leader_does(world: Replicas) -> None:
    """KAFKA-9491: its high watermark is where its new log begins."""
    one, two, _three = world.all.values()
    one.write(b"a", b"b", b"c")
    world.copy(1, 2, 3)
    world.alter(1, isr=(1, 3))
    one.write(b"d", b"e")
    # Before that, the leader waits for a replica that may soon be in sync again.
    world.now_ms += LAG_MAX_MS + 1
    world.copy(1, 3)
    one.partition.delete_records(5, now_ms=NOW_MS)
    one.write(b"f")
    two.fetch_from(one)
    log = two.partition.log
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    assert log.high_watermark == 5
    world.copy(1, 2)
    assert two.values == [b"f"]


def test_a_follower_ahead_of_an_unclean_leader_is_cut_to_it(world: Replicas) -> None:
    """KAFKA-7414. The follower's epochs are unknown to the leader, so it asks for its end."""
    one, two, three = world.all.values()
    one.write(b"a", b"b", b"c")
    world.copy(1, 2)
    two.partition.log.local_log.assign_epoch(7)
    world.leader_epoch = 7
    three.partition.log.truncate_to(0, now_ms=NOW_MS)
    world.lead(3, isr=(3,))
    three.write(b"new")
    for _ in range(4):
        two.fetch_from(three)
    assert two.values == [b"new"]


def test_an_empty_log_that_begins_within_a_batch_takes_the_batch(world: Replicas) -> None:
    """KAFKA-6975: DeleteRecords within a batch, then a new replica."""
    one, two, _ = world.all.values()
    batch = batch_of(*[RecordData(b"%d" % number, None, 1, ()) for number in range(5)])
    one.partition.append_records_to_leader(batch, required_acks=1, wall_ms=NOW_MS, now_ms=1)
    one.partition.log.update_high_watermark(5)
    one.partition.delete_records(3, now_ms=NOW_MS)
    for _ in range(3):
        two.fetch_from(one)
    log = two.partition.log.local_log
    assert (two.problems, log.log_start_offset, log.log_end_offset) == ([], 3, 5)
    theirs = one.partition.log.local_log.read(3, 1 << 20, end_offset=5)
    assert bytes(log.read(3, 1 << 20, end_offset=5)) == bytes(theirs)


def test_the_start_of_the_log_follows_the_leaders(world: Replicas) -> None:
    one, two, three = world.all.values()
    one.write(b"a", b"b")
    world.copy(1, 2, 3)
    one.partition.delete_records(1, now_ms=NOW_MS)
    assert one.partition.low_watermark == 0
    world.copy(1, 2, 3)
    assert [each.partition.log.log_start_offset for each in (two, three)] == [1, 1]
    assert one.partition.low_watermark == 1


def test_a_fetch_that_fails_tells_the_leader_nothing(world: Replicas) -> None:
    """KAFKA-8400."""
    one, two, _three = world.all.values()
    one.write(b"a")
    world.copy(1, 3)
    fetch = two.ask()
    wish_of(fetch).fetch_offset = 9
    assert data_of(one.serve(fetch.request)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert one.partition.log.high_watermark == 0


def test_a_diverging_fetch_tells_the_leader_nothing(world: Replicas) -> None:
    one, two, three = world.all.values()
    one.write(b"a", b"b")
    two.fetch_from(one)
    world.lead(3, isr=(2, 3))
    three.write(b"c")
    response = three.serve(two.ask().request)
    assert data_of(response).diverging_epoch.end_offset == 0
    assert data_of(response).records == b""
    assert three.partition.log.high_watermark == 0


def test_a_fetch_of_an_earlier_incarnation_gets_nothing(world: Replicas) -> None:
    """KAFKA-15221, KIP-903: it may have lost what it says that it has."""
    one, two, _ = world.all.values()
    one.write(b"a")
    fetch = two.ask()
    fetch.request.replica_state.replica_epoch = two.broker.epoch() - 1
    data = data_of(one.serve(fetch.request))
    assert (data.error_code, data.records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")


def test_a_follower_that_catches_up_is_proposed_for_the_isr(world: Replicas) -> None:
    one, two, _ = world.all.values()
    world.alter(1, isr=(1, 3))
    one.write(b"a")
    world.now_ms += LAG_MAX_MS + 1
    world.copy(1, 3)
    two.fetch_from(one)
    assert one.proposals == []
    two.fetch_from(one)
    (proposal,) = one.proposals
    assert [member for member, _ in proposal.isr] == [1, 2, 3]
    leader = one.partition.demand_leader()
    assert (leader.is_under_replicated, leader.is_at_min_isr) == (True, True)
    one.partition.on_altered(proposal, Refused(ErrorCode.NOT_CONTROLLER), world.now_ms)
    one.partition.on_altered(proposal, accepted(proposal), world.now_ms)
    assert (one.isr_changes.failure_count, one.isr_changes.expand_count) == (1, 1)
    assert (leader.is_under_replicated, leader.is_at_min_isr) == (False, False)


def test_an_unanswered_offset_search_is_made_again_later(world: Replicas) -> None:
    two = world.all[2]
    search = OffsetSearch(list(two.ask().asked.values()))
    assert search.on_response(two.fetcher, ListOffsetsResponse(), world.now_ms) is None
    assert two.fetcher.fetch(world.now_ms, version=18, broker_epoch=1) is None


def test_producers_are_known_to_a_follower_that_leads_next(world: Replicas) -> None:
    """A duplicate is found by the next leader, also after a truncation."""
    one, two, _ = world.all.values()

    def write(replica: int, value: bytes, sequence: int) -> int:
        info = world.all[replica].partition.append_records_to_leader(
            sent(value, sequence=sequence, producer=7), required_acks=1, wall_ms=NOW_MS, now_ms=1
        )
        return info.first_offset

    write(1, b"a", 0)
    world.copy(1, 2, 3)
    write(1, b"b", 1)
    two.fetch_from(one)
    world.lead(3)
    world.copy(3, 2)
    assert two.values == [b"a"]
    world.lead(2)
    assert write(2, b"b", 1) == 1
    assert write(2, b"a", 0) == 0
    assert two.values == [b"a", b"b"]


def test_the_high_watermark_moves_when_a_lagging_follower_leaves_the_isr(world: Replicas) -> None:
    """KAFKA-13091."""
    one = world.all[1]
    one.write(b"a")
    world.copy(1, 2)
    assert one.partition.log.high_watermark == 0
    world.now_ms += LAG_MAX_MS + 1
    world.copy(1, 2)
    one.partition.shrink_isr(world.now_ms)
    (proposal,) = one.proposals
    assert [member for member, _ in proposal.isr] == [1, 2]
    one.partition.on_altered(proposal, accepted(proposal), world.now_ms)
    assert one.partition.log.high_watermark == 1
    one.partition.on_altered(proposal, accepted(proposal), world.now_ms)
    assert (one.isr_changes.shrink_count, one.isr_changes.expand_count) == (1, 0)


def test_a_follower_of_another_leader_epoch_gets_nothing(world: Replicas) -> None:
    """KIP-320."""
    one, two, _ = world.all.values()
    one.write(b"a")
    fetch = two.ask()
    wish_of(fetch).current_leader_epoch = 1
    data = data_of(one.serve(fetch.request))
    assert (data.error_code, data.records) == (ErrorCode.UNKNOWN_LEADER_EPOCH, b"")
    world.lead(1, known_by="1")
    wish_of(fetch).current_leader_epoch = 0
    data = data_of(one.serve(fetch.request))
    assert (data.error_code, data.records) == (ErrorCode.FENCED_LEADER_EPOCH, b"")


def test_a_follower_of_an_idle_log_stays_in_sync(world: Replicas) -> None:
    """KAFKA-7152: it has everything, however long ago that was."""
    one = world.all[1]
    one.write(b"a")
    world.copy(1, 2, 3)
    world.now_ms += 2 * LAG_MAX_MS
    one.partition.shrink_isr(world.now_ms)
    assert one.proposals == []


def test_what_was_appended_before_a_corrupt_batch_is_not_fetched_again(
    world: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker that cannot be read is found when the batches before it are in the log."""
    one, two, _ = world.all.values()
    one.write(b"a")
    fetch = two.ask()
    append = two.partition.append_records_to_follower

    def fail(records: bytes | memoryview, *, leader_epoch: int, wall_ms: int) -> None:
        append(records, leader_epoch=leader_epoch, wall_ms=wall_ms)
        raise CorruptBatchError("record batch", "no marker")

    with monkeypatch.context() as patched:
        patched.setattr(two.partition, "append_records_to_follower", fail)
        two.take(fetch, one.serve(fetch.request), one)
    one.write(b"b")
    world.now_ms += BACKOFF_MS
    two.fetch_from(one)
    assert two.values == [b"a", b"b"]
    assert two.fetcher.failed == set()


def test_those_who_wait_are_called_in_the_order_in_which_they_came() -> None:
    world = Replicas()
    world.lead(1)
    called: list[int] = []
    for number in range(50):
        world.all[1].partition.watchers.add(partial(called.append, number))
    world.all[1].write(b"a")
    assert called == list(range(50))


def test_the_lag_counts_from_the_leaders_high_watermark(world: Replicas) -> None:
    one, two, _ = world.all.values()
    one.write(b"a")
    one.write(b"b")
    fetch = two.ask()
    response = one.serve(fetch.request)
    data_of(response).high_watermark = 5
    two.take(fetch, response, one)
    assert two.fetcher.max_lag == 3
    assert two.topic_stats.replication_bytes_in == len(data_of(response).records or b"")
    for key in two.fetcher.keys:
        two.fetcher.remove(key)
    assert two.fetcher.max_lag == 0
