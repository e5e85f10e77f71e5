"""Quotas of clients and of replicas that are copied (KIP-73), and the counts of records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map
from tests.unit.broker.fetcher.replicas import Replicas

from kvorum.broker.broker_topic_stats import BrokerTopicMetrics, BrokerTopicStats
from kvorum.broker.quota import client_quota_manager
from kvorum.broker.quota.client_quota_manager import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    THROTTLE_TIME_MS_MAX,
    UNLIMITED,
    ClientQuotaManager,
    ClientRequestQuotaManager,
    QuotaClient,
    QuotaManagers,
)
from kvorum.broker.quota.rate import MetricConfig, Rate, SimpleRate
from kvorum.broker.quota.replication_quota_manager import (
    ALTER_LOG_DIRS_RATE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ReplicationQuotaManager,
    new_replication_quota_managers,
    parse_throttled_partitions,
)
from kvorum.metadata.configs_image import (
    CLIENT_ID,
    IP,
    USER,
    ClientQuotasImage,
    ConfigsImage,
    QuotaEntity,
    ResourceType,
    replay_config,
)
from kvorum.metadata.unused_quotas import FORGET_INTERVAL_MS
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.messages.config_record import ConfigRecord

CONFIG = MetricConfig(sample_count=11, window_ms=1000.0)
ALICE = QuotaClient("alice", "app")
# From the weakest to the strongest, as in Kafka's documentation.
BY_STRENGTH: tuple[QuotaEntity, ...] = (
    ((CLIENT_ID, None),),
    ((CLIENT_ID, "app"),),
    ((USER, None),),
    ((CLIENT_ID, None), (USER, None)),
    ((CLIENT_ID, "app"), (USER, None)),
    ((USER, "alice"),),
    ((CLIENT_ID, None), (USER, "alice")),
    ((CLIENT_ID, "app"), (USER, "alice")),
)
TEN_SAMPLES = MetricConfig(sample_count=10, window_ms=1000.0)
TOPIC = TopicPartition("topic", 0)


def image(key: str, bounds: dict[QuotaEntity, float]) -> ClientQuotasImage:
    return ClientQuotasImage(Map({entity: Map({key: bound}) for entity, bound in bounds.items()}))


def manager(bounds: dict[QuotaEntity, float]) -> ClientQuotaManager:
    made = ClientQuotaManager(PRODUCER_BYTE_RATE, CONFIG)
    made.update_quotas(image(PRODUCER_BYTE_RATE, bounds))
    return made


@pytest.mark.parametrize("count", range(1, len(BY_STRENGTH) + 1))
def test_the_most_specific_quota_counts(count: int) -> None:
    bounds = {entity: float(number) for number, entity in enumerate(BY_STRENGTH[:count], 1)}
    assert manager(bounds).max_value_in_quota_window(ALICE) == count * 10


def test_clients_of_a_user_share_the_quota_of_the_user() -> None:
    quota = manager({((USER, "alice"),): 100.0})
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 1000.0, 0.0) == 0
    other = QuotaClient("alice", "other")
    assert quota.maybe_record_and_get_throttle_time_ms(other, 100.0, 0.0) == 1000
    assert quota.maybe_record_and_get_throttle_time_ms(QuotaClient("bob", "app"), 1e9, 0.0) == 0


def test_the_wait_brings_the_rate_down_to_the_quota() -> None:
    quota = manager({((CLIENT_ID, "app"),): 100.0})
    # 1,500 in the ten seconds that count are half too much.
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 1500.0, 0.0) == 5000
    # Windows before the first request count, so that only time after all of them brings it down.
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 0.0, 5000.0) == 5000
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 0.0, 15_000.0) == 0


def test_no_client_waits_for_longer_than_a_response_can_say() -> None:
    quota = manager({((CLIENT_ID, "app"),): 1.0})
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 1e12, 0.0) == THROTTLE_TIME_MS_MAX


def test_what_is_taken_back_does_not_count() -> None:
    quota = manager({((CLIENT_ID, "app"),): 100.0})
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 5000.0, 0.0) > 0
    quota.unrecord_quota_sensor(ALICE, 5000.0, 0.0)
    assert quota.maybe_record_and_get_throttle_time_ms(ALICE, 1000.0, 1.0) == 0


def test_a_request_waits_no_longer_than_a_window() -> None:
    quota = ClientRequestQuotaManager(REQUEST_PERCENTAGE, CONFIG)
    quota.update_quotas(image(REQUEST_PERCENTAGE, {((USER, None),): 1.0}))
    # 100 ms of ten seconds are one percent.
    assert quota.maybe_record_request_time(ALICE, 100.0, 0.0) == 0
    assert quota.maybe_record_request_time(ALICE, 1.0, 0.0) == 100
    assert quota.maybe_record_request_time(ALICE, 5000.0, 0.0) == 1000


def test_quotas_follow_the_metadata_and_what_was_used_is_kept() -> None:
    managers = QuotaManagers(CONFIG)
    assert managers.produce.maybe_record_and_get_throttle_time_ms(ALICE, 1e9, 0.0) == 0
    entity: QuotaEntity = ((CLIENT_ID, "app"),)
    managers.update(image(PRODUCER_BYTE_RATE, {entity: 100.0}))
    # Bytes that were sent without a quota are not held against the client.
    assert managers.produce.maybe_record_and_get_throttle_time_ms(ALICE, 900.0, 0.0) == 0
    assert not managers.fetch.quotas_enabled
    managers.update(image(PRODUCER_BYTE_RATE, {entity: 45.0}))
    assert managers.produce.maybe_record_and_get_throttle_time_ms(ALICE, 0.0, 0.0) == 10_000
    managers.update(image(CONSUMER_BYTE_RATE, {entity: 45.0}))
    assert managers.produce.maybe_record_and_get_throttle_time_ms(ALICE, 1e9, 0.0) == 0
    assert managers.fetch.max_value_in_quota_window(ALICE) == 450
    managers.update(image(REQUEST_PERCENTAGE, {entity: 50.0}))
    assert managers.request.quotas_enabled


def test_a_new_client_costs_no_look_at_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[None] = []

    class NotedRate(Rate):
        @property
        def last_ms(self) -> float:
            looks.append(None)
            return super().last_ms

    monkeypatch.setattr(client_quota_manager, "Rate", NotedRate)
    clients = manager({((CLIENT_ID, None),): 1e9})
    count = 300
    for number in range(count):
        clients.maybe_record_and_get_throttle_time_ms(QuotaClient("", str(number)), 1, number)
    assert len(looks) == count, "one for itself"
    clients.maybe_record_and_get_throttle_time_ms(QuotaClient("", "late"), 1, FORGET_INTERVAL_MS)
    assert len(looks) == 2 * count + 1


def test_quotas_of_addresses_are_not_those_of_clients() -> None:
    quota = manager({((IP, None),): 1.0})
    assert not quota.quotas_enabled
    assert quota.max_value_in_quota_window(ALICE) == UNLIMITED


def replication(bound: int, throttled: str = "*") -> ReplicationQuotaManager:
    made = ReplicationQuotaManager(TEN_SAMPLES, 1, lambda _: throttled)
    made.update_quota(bound)
    return made


def test_a_rate_is_that_since_its_oldest_sample_but_over_one_window_at_least() -> None:
    """The steps of Kafka's ReplicationQuotaManagerTest.shouldExceedQuotaThenReturnBackBelow..."""
    quota, now_ms = replication(100), 5_000.0
    # 1 byte above what one window allows.
    quota.record(100, now_ms)
    assert not quota.is_quota_exceeded(now_ms)
    quota.record(1, now_ms)
    assert quota.is_quota_exceeded(now_ms)
    # 101 bytes in 2 seconds are 50.5 a second.
    now_ms += 2_000
    assert not quota.is_quota_exceeded(now_ms)
    quota.record(99, now_ms)
    assert not quota.is_quota_exceeded(now_ms)
    quota.record(1, now_ms)
    assert quota.is_quota_exceeded(now_ms)
    # Sample by sample, what is old counts no longer.
    now_ms += 10_000
    assert not quota.is_quota_exceeded(now_ms)
    quota.record(1, now_ms)
    assert not quota.is_quota_exceeded(now_ms)


def test_an_invalid_rate_is_not_a_bound() -> None:
    """Controllers write any value of a broker to the log, as Kafka's do."""
    configs = replay_config(ConfigsImage(), ConfigRecord(4, "1", LEADER_RATE, "soon"))
    managers = new_replication_quota_managers(
        lambda: configs, 1, replication=TEN_SAMPLES, alter_log_dirs=TEN_SAMPLES
    )
    managers.update(configs, 1)
    managers.leader.record(1 << 40, 0.0)
    assert not managers.leader.is_quota_exceeded(0.0)


def test_a_bound_that_is_raised_counts_at_once() -> None:
    quota = replication(10)
    quota.record(50, 0.0)
    assert quota.is_quota_exceeded(0.0)
    quota.update_quota(50)
    assert not quota.is_quota_exceeded(0.0)


@given(
    bound=st.integers(10, 10_000),
    chunk=st.integers(1, 20_000),
    steps=st.lists(st.integers(1, 700), min_size=20, max_size=120),
)
def test_who_asks_before_each_copy_exceeds_the_bound_by_one_copy_at_most(
    bound: int, chunk: int, steps: list[int]
) -> None:
    """Kafka's allowance: what is under way when the bound is reached still counts."""
    quota, now_ms, copied = replication(bound), 0.0, 0
    for step_ms in steps:
        if not quota.is_quota_exceeded(now_ms):
            quota.record(chunk, now_ms)
            copied += chunk
        elapsed_s = max(now_ms, TEN_SAMPLES.window_ms) / 1000
        # Samples forget what is older than the windows; until then the sum is exact.
        if now_ms < TEN_SAMPLES.sample_count * TEN_SAMPLES.window_ms:
            assert copied <= bound * elapsed_s + chunk
        now_ms += step_ms


def test_one_more_sample_than_windows_is_kept() -> None:
    rate = SimpleRate(MetricConfig(2, 1000.0))
    for now_ms in (0.0, 1000.0, 1500.0, 2000.0, 3000.0):
        rate.record(10, now_ms)
    # Samples that began at 1,000, 2,000 and 3,000; that of 0 was used again.
    assert rate.measure(3_000.0) == 40 / 2
    # The oldest one had its last event two windows ago.
    assert rate.measure(3_500.0) == 20 / 1.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [("*", None), ("0:1,1:2,2:1", {0, 2}), ("0:3", set[int]()), (" 0:1 , 5:1 ", {0, 5})],
)
def test_throttled_replicas_are_those_of_this_broker(text: str, expected: set[int] | None) -> None:
    assert parse_throttled_partitions(text, 1) == expected


def test_only_throttled_replicas_are_held_back() -> None:
    quota = replication(10, "0:1,1:2")
    quota.record(1_000, 0.0)
    assert [quota.is_throttled(TopicPartition("topic", index)) for index in (0, 1)] == [True, False]
    assert not replication(10, "").is_throttled(TOPIC)


def configured(*changes: tuple[ResourceType, str, str, str]) -> ConfigsImage:
    image = ConfigsImage()
    for kind, resource, key, value in changes:
        record = ConfigRecord(resource_type=kind, resource_name=resource, name=key, value=value)
        image = replay_config(image, record)
    return image


def test_bounds_and_replicas_are_those_of_the_configuration() -> None:
    configs = configured(
        (ResourceType.BROKER, "", LEADER_RATE, "100"),
        (ResourceType.BROKER, "", FOLLOWER_RATE, "100"),
        (ResourceType.BROKER, "1", FOLLOWER_RATE, "50"),
        (ResourceType.BROKER, "2", ALTER_LOG_DIRS_RATE, "1"),
        (ResourceType.TOPIC, "topic", LEADER_REPLICAS, "0:1"),
        (ResourceType.TOPIC, "other", FOLLOWER_REPLICAS, "*"),
    )
    quotas = new_replication_quota_managers(
        lambda: configs, 1, replication=TEN_SAMPLES, alter_log_dirs=TEN_SAMPLES
    )
    quotas.update(configs, 1)
    for quota in quotas:
        quota.record(80, 0.0)
    assert [quota.is_quota_exceeded(0.0) for quota in quotas] == [False, True, False]
    assert [quota.is_throttled(TOPIC) for quota in quotas] == [True, False, True]
    other = TopicPartition("other", 7)
    assert [quota.is_throttled(other) for quota in quotas] == [False, True, True]
    quotas.update(ConfigsImage(), 1)
    assert not any(quota.is_quota_exceeded(0.0) for quota in quotas)


def test_a_leader_holds_back_followers_that_are_not_in_sync() -> None:
    replicas = Replicas()
    replicas.lead(1, isr=(1, 2))
    partition = replicas.all[1].partition
    quota = replication(10)
    assert not quota.should_leader_throttle(partition, 3, 0.0)
    quota.record(1_000, 0.0)
    assert [quota.should_leader_throttle(partition, one, 0.0) for one in (2, 3)] == [False, True]


def test_a_follower_leaves_out_what_is_throttled_until_it_is_in_sync() -> None:
    replicas = Replicas()
    quota = replication(10)
    leader, follower, third = replicas.all.values()
    follower.throttle(quota)
    third.throttle(quota)
    replicas.lead(1)
    leader.write(b"one", b"two")
    # The first fetch is not held back; it uses up the quota, and leaves the replica behind.
    follower.fetch_from(leader)
    assert follower.end_offset == 2
    assert quota.is_quota_exceeded(replicas.now_ms)
    # All that the leader knew to be committed is there: the replica counts as in sync.
    follower.fetch_from(leader)
    leader.write(b"three")
    follower.fetch_from(leader)
    assert follower.end_offset == 3
    # A replica that has never fetched waits, and goes on once the rate is down.
    assert third.fetcher.fetch(replicas.now_ms, version=18, broker_epoch=1) is None
    assert third.fetcher.next_due_ms(replicas.now_ms) > replicas.now_ms
    replicas.now_ms += 100_000
    third.fetch_from(leader)
    assert third.end_offset == 3


def test_a_topic_counts_for_itself_and_for_all() -> None:
    stats = BrokerTopicStats()
    stats.on_produce_request("a")
    stats.on_append("a", size_bytes=100, message_count=3)
    stats.on_append("b", size_bytes=10, message_count=1)
    stats.on_fetch_request("b")
    stats.on_bytes_out("b", size_bytes=7, is_follower=False)
    stats.on_bytes_out("b", size_bytes=5, is_follower=True)
    stats.on_rejected("a", size_bytes=2000)
    stats.on_failed_produce_request("a")
    assert stats.topics["a"] == BrokerTopicMetrics(
        messages_in=3,
        bytes_in=100,
        bytes_rejected=2000,
        failed_produce_requests=1,
        total_produce_requests=1,
    )
    assert stats.topics["b"] == BrokerTopicMetrics(
        messages_in=1, bytes_in=10, bytes_out=7, total_fetch_requests=1
    )
    assert (stats.all_topics.messages_in, stats.all_topics.bytes_in) == (4, 110)
    assert stats.replication_bytes_out == 5


def test_a_topic_that_is_gone_is_forgotten_and_still_counts_for_all() -> None:
    stats = BrokerTopicStats()
    stats.on_append("a", size_bytes=100, message_count=3)
    stats.on_append("b", size_bytes=10, message_count=1)
    stats.retain(["b", "b"])
    assert stats.topics.keys() == {"b"}
    assert stats.all_topics.bytes_in == 110
