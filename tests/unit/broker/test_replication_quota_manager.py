"""The rate that replicas are copied with, and the replicas that are held back (KIP-73)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.broker.fetcher.replicas import Replicas

from kvorum.broker.quota.rate import SimpleRate
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
from kvorum.broker.quota.sampled_stat import MetricConfig
from kvorum.metadata.configs_image import ConfigsImage, ResourceType, replay_config
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.messages.config_record import ConfigRecord

CONFIG = MetricConfig(sample_count=10, window_ms=1000.0)
TOPIC = TopicPartition("topic", 0)


def manager(bound: int, throttled: str = "*") -> ReplicationQuotaManager:
    made = ReplicationQuotaManager(CONFIG, 1, lambda _: throttled)
    made.update_quota(bound)
    return made


def test_a_rate_is_that_since_its_oldest_sample_but_over_one_window_at_least() -> None:
    """The steps of Kafka's ReplicationQuotaManagerTest.shouldExceedQuotaThenReturnBackBelow..."""
    quota, now_ms = manager(100), 5_000.0
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
        lambda: configs, 1, replication=CONFIG, alter_log_dirs=CONFIG
    )
    managers.update(configs, 1)
    managers.leader.record(1 << 40, 0.0)
    assert not managers.leader.is_quota_exceeded(0.0)


def test_a_bound_that_is_raised_counts_at_once() -> None:
    quota = manager(10)
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
    quota, now_ms, copied = manager(bound), 0.0, 0
    for step_ms in steps:
        if not quota.is_quota_exceeded(now_ms):
            quota.record(chunk, now_ms)
            copied += chunk
        elapsed_s = max(now_ms, CONFIG.window_ms) / 1000
        # Samples forget what is older than the windows; until then the sum is exact.
        if now_ms < CONFIG.sample_count * CONFIG.window_ms:
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
    quota = manager(10, "0:1,1:2")
    quota.record(1_000, 0.0)
    assert [quota.is_throttled(TopicPartition("topic", index)) for index in (0, 1)] == [True, False]
    assert not manager(10, "").is_throttled(TOPIC)


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
        lambda: configs, 1, replication=CONFIG, alter_log_dirs=CONFIG
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
    quota = manager(10)
    assert not quota.should_leader_throttle(partition, 3, 0.0)
    quota.record(1_000, 0.0)
    assert [quota.should_leader_throttle(partition, one, 0.0) for one in (2, 3)] == [False, True]


def test_a_follower_leaves_out_what_is_throttled_until_it_is_in_sync() -> None:
    replicas = Replicas()
    quota = manager(10)
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
