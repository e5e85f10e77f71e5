"""Fetches of clients: the replica that serves them, their sessions, and what those are sent."""

from __future__ import annotations

from random import Random

import pytest
from tests.unit.broker.fetcher.replicas import WALL_MS, Replicas

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.fetch_session.context import FetchManager
from kvorum.broker.fetch_session.session import (
    EPOCH_MAX,
    EVICTION_MS,
    SHARDS,
    CachedPartition,
    FetchSession,
    FetchSessionCacheShard,
    key_of,
    next_epoch,
)
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.replica_selector import PartitionView, RackAwareReplicaSelector, ReplicaView
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse

LEADER = ReplicaView(1, "a", 100, 0.0)


@pytest.fixture
def world() -> Replicas:
    """Replica 1 leads, and all have two committed records."""
    world = Replicas()
    world.lead(1)
    world.all[1].write(b"a", b"b")
    world.copy(1, 2, 3)
    return world


@pytest.mark.parametrize("is_leader_needed", [True, False])
def test_only_clients_that_know_of_followers_read_from_one(
    world: Replicas, is_leader_needed: bool
) -> None:
    """KAFKA-9004: others would go on with a follower, and never come back to the leader."""

    def read() -> int:
        found = world.all[2].partition.fetch_records(
            0,
            1000,
            isolation=IsolationLevel.READ_UNCOMMITTED,
            leader_epoch=world.leader_epoch,
            is_leader_needed=is_leader_needed,
        )
        return len(found.records)

    if is_leader_needed:
        with pytest.raises(LeaderRefusesError) as refused:
            read()
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        assert read() > 0


def test_only_the_leader_deletes_records(world: Replicas) -> None:
    """KAFKA-6046."""
    leader, follower = world.all[1].partition, world.all[2].partition
    with pytest.raises(LeaderRefusesError) as refused:
        follower.delete_records(1, now_ms=WALL_MS)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert follower.log.log_start_offset == 0
    leader.delete_records(1, now_ms=WALL_MS)
    assert leader.log.log_start_offset == 1


def test_a_new_leader_knows_the_end_when_it_has_heard_of_its_predecessors_records(
    world: Replicas,
) -> None:
    """KIP-207."""
    world.all[1].write(b"c")
    world.all[2].fetch_from(world.all[1])
    world.lead(2)
    leader = world.all[2].partition
    assert not leader.demand_leader().is_offset_available
    world.all[2].write(b"d")
    world.copy(2, 1)
    assert not leader.demand_leader().is_offset_available
    # From here on all have the records of the epochs before, though not all of this one's.
    world.all[2].write(b"e")
    world.all[3].fetch_from(world.all[2])
    world.all[3].fetch_from(world.all[2])
    assert leader.log.high_watermark < leader.log.log_end_offset
    assert leader.demand_leader().is_offset_available


def selected(rack_id: str, *followers: ReplicaView) -> int:
    view = PartitionView((*followers, LEADER), LEADER)
    return RackAwareReplicaSelector().select(rack_id, view).broker_id


@pytest.mark.parametrize(("rack_id", "expected"), [("", 1), ("a", 1), ("b", 3), ("c", 1)])
def test_a_follower_in_the_rack_comes_before_a_leader_elsewhere(
    rack_id: str, expected: int
) -> None:
    followers = ReplicaView(2, "a", 100, 0.0), ReplicaView(3, "b", 90, 5.0)
    assert selected(rack_id, *followers) == expected


def test_a_broker_without_a_rack_is_in_no_rack() -> None:
    assert selected("", ReplicaView(2, "", 100, 0.0), ReplicaView(3, None, 100, 0.0)) == 1


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (ReplicaView(3, "b", 91, 9.0), 3),
        (ReplicaView(3, "b", 90, 4.0), 3),
        (ReplicaView(3, "b", 90, 6.0), 2),
        (ReplicaView(3, "b", 90, 5.0), 3),
        (ReplicaView(3, "b", 89, 0.0), 2),
    ],
)
def test_of_a_rack_the_longest_log_then_who_was_caught_up_last(
    other: ReplicaView, expected: int
) -> None:
    assert selected("b", ReplicaView(2, "b", 90, 5.0), other) == expected


def create(
    shard: FetchSessionCacheShard, size: int, now_ms: float, *, is_privileged: bool = False
) -> FetchSession | None:
    session = shard.create(size, is_privileged=is_privileged, uses_topic_ids=False, now_ms=now_ms)
    if session is not None:
        for index in range(size):
            session.partitions[key_of("t", bytes(16), index)] = CachedPartition(
                "t", bytes(16), FetchRequest.FetchPartition(index)
            )
        shard.touch(session, now_ms)
    return session


def full_shard(*sizes: int) -> FetchSessionCacheShard:
    shard = FetchSessionCacheShard(0, len(sizes), Random(1))
    for size in sizes:
        assert create(shard, size, 0) is not None
    return shard


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_session_that_is_used_makes_no_room() -> None:
    assert create(full_shard(1, 2), 9, EVICTION_MS) is None


def test_the_least_recently_used_session_goes_once_it_was_idle_for_long() -> None:
    shard = full_shard(3)
    assert create(shard, 1, EVICTION_MS) is None
    assert create(shard, 1, EVICTION_MS + 1) is not None
    assert len(shard) == 1


@pytest.mark.parametrize(("size", "is_evicted"), [(2, False), (3, True)])
def test_a_consumer_makes_only_an_old_and_smaller_session_go(
    size: int, *, is_evicted: bool
) -> None:
    shard = FetchSessionCacheShard(0, 2, Random(1))
    old, other = create(shard, 2, 0), create(shard, 5, 0)
    assert old is not None
    assert other is not None
    for session in (old, other):
        shard.touch(session, EVICTION_MS)
    # Old enough only by the next use.
    assert create(shard, 9, EVICTION_MS + 1) is None
    for session in (old, other):
        shard.touch(session, EVICTION_MS + 1)
    assert (create(shard, size, EVICTION_MS + 2) is not None) is is_evicted
    assert (shard.get(old.id) is None) is is_evicted
    assert shard.get(other.id) is other


def test_a_follower_makes_a_consumer_go_but_no_young_follower() -> None:
    shard = full_shard(4, 9)
    assert create(shard, 1, 1, is_privileged=True) is not None
    assert create(shard, 1, 2, is_privileged=True) is not None
    assert create(shard, 9, 3, is_privileged=True) is None
    assert create(shard, 9, 3) is None


def test_ids_belong_to_their_shard() -> None:
    manager = FetchManager(SHARDS, Random(1))
    shards = [manager.cache.next_shard() for _ in range(SHARDS)]
    for shard in shards:
        session = create(shard, 1, 0)
        assert session is not None
        assert manager.cache.shard_of(session.id) is shard
    assert manager.cache.next_shard() is shards[0]


def test_the_epoch_after_the_largest_is_the_first() -> None:
    assert next_epoch(EPOCH_MAX) == 1


class Client:
    """A client with one partition, and a broker that reads what it is given."""

    def __init__(self) -> None:
        self.manager = FetchManager(80, Random(1))
        self.session_id = 0
        self.epoch = 0

    def fetch(self, *read: FetchResponse.PartitionData, throttle_time_ms: int = 0) -> FetchResponse:
        wishes = [FetchRequest.FetchPartition(one.partition_index) for one in read]
        topics = [] if self.epoch else [FetchRequest.FetchTopic("t", partitions=wishes)]
        request = FetchRequest(session_id=self.session_id, session_epoch=self.epoch, topics=topics)
        context = self.manager.new_context(request, version=12, names=no_name, now_ms=0)
        self.asked = [one.partition for topic in context.topics for one in topic.partitions]
        topic = FetchResponse.FetchableTopicResponse("t", partitions=list(read))
        self.size = context.response_size([topic], version=12)
        if throttle_time_ms > 0:
            answer = context.throttled_response(throttle_time_ms)
        else:
            answer = context.response([topic], now_ms=0)
        self.session_id, self.epoch = answer.session_id, self.epoch + 1
        return answer


def no_name(_topic_id: bytes) -> str | None:
    return None


def data(
    index: int, high_watermark: int = 5, *, error: int = 0, records: bytes = b""
) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(
        index, error_code=error, high_watermark=high_watermark, log_start_offset=0, records=records
    )


def listed(answer: FetchResponse) -> list[int]:
    assert answer.error_code == ErrorCode.NONE
    return [one.partition_index for topic in answer.responses for one in topic.partitions]


def test_an_incremental_response_has_the_news_alone(client: Client) -> None:
    assert listed(client.fetch(data(0), data(1))) == [0, 1]
    assert listed(client.fetch(data(0), data(1))) == []
    assert listed(client.fetch(data(0, 6), data(1))) == [0]
    assert listed(client.fetch(data(0, 6), data(1, records=b"r"))) == [1]


def test_an_error_is_sent_until_it_is_over_and_then_that(client: Client) -> None:
    client.fetch(data(0))
    error = data(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert listed(client.fetch(error)) == [0]
    assert listed(client.fetch(error)) == [0]
    assert listed(client.fetch(data(0))) == [0]
    assert listed(client.fetch(data(0))) == []


def test_what_returned_records_is_read_last_the_next_time(client: Client) -> None:
    client.fetch(data(0), data(1), data(2))
    client.fetch(data(0, records=b"r"), data(1), data(2))
    client.fetch(data(1), data(2), data(0))
    assert client.asked == [1, 2, 0]


def test_a_request_that_another_one_has_overtaken_is_refused(client: Client) -> None:
    client.fetch(data(0))
    request = FetchRequest(session_id=client.session_id, session_epoch=1)
    slow = client.manager.new_context(request, version=12, names=no_name, now_ms=0)
    client.epoch = 2
    assert listed(client.fetch(data(0))) == []
    assert slow.response([], now_ms=0).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_an_id_outside_of_every_shard_is_an_error_as_in_kafka() -> None:
    manager = FetchManager(80, Random(1))
    for session_id in (2**31 - 1, -(2**31)):
        request = FetchRequest(session_id=session_id, session_epoch=1)
        with pytest.raises(RequestError):
            manager.new_context(request, version=12, names=no_name, now_ms=0)


def test_a_throttled_client_gets_what_is_news_with_its_next_request(client: Client) -> None:
    client.fetch(data(0), data(1))
    read = (data(0, 6, records=b"abc"), data(1))
    answer = client.fetch(*read, throttle_time_ms=70)
    assert (answer.throttle_time_ms, answer.session_id) == (70, client.session_id)
    assert answer.responses == []
    # The bytes that it would have got count: here one of two partitions.
    assert client.size == 4 + len(FetchResponse(responses=[topic_of(read[0])]).encode(12))
    assert listed(client.fetch(*read)) == [0]


def test_a_throttled_client_begins_no_session(client: Client) -> None:
    assert client.fetch(data(0), throttle_time_ms=1).session_id == 0
    assert client.size == 4 + len(FetchResponse(responses=[topic_of(data(0))]).encode(12))


def test_a_throttled_client_hears_of_a_lost_session_later(client: Client) -> None:
    client.session_id, client.epoch = 9, 5
    answer = client.fetch(throttle_time_ms=8)
    assert (answer.error_code, answer.throttle_time_ms) == (ErrorCode.NONE, 8)
    client.session_id, client.epoch = 9, 5
    assert client.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert client.size == 4 + len(FetchResponse().encode(12))


def topic_of(one: FetchResponse.PartitionData) -> FetchResponse.FetchableTopicResponse:
    return FetchResponse.FetchableTopicResponse("t", partitions=[one])
