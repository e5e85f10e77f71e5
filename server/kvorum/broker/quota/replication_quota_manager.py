"""The bytes a second that replicas are copied with (KIP-73): Kafka's ReplicationQuotaManager.

Pure: the time is an argument. A quota is a bound on the rate of what is recorded; nothing keeps a
recording from going beyond it. Each copier asks before, and holds back replicas that are
throttled and not in sync while the rate is above the bound.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from kvorum.broker.partition import Partition
from kvorum.broker.quota.rate import MetricConfig, SimpleRate
from kvorum.broker.views.config_layers import applied_values
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.storage.topic_partition import TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
ALTER_LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
UNLIMITED: Final = 2**63 - 1
"""Kafka's QUOTA_BYTES_PER_SECOND_DEFAULT."""
_ALL_REPLICAS: Final = "*"


class ReplicationQuotaManager:
    """One bound, the rate that counts against it, and the replicas that it is for.

    `throttled_replicas` returns the text of a topic's setting: ``*``, or ``partition:broker``
    pairs.
    """

    def __init__(
        self, config: MetricConfig, broker_id: int, throttled_replicas: Callable[[str], str]
    ) -> None:
        self._broker_id = broker_id
        self._throttled_replicas = throttled_replicas
        self._rate = SimpleRate(config)
        self._bound = UNLIMITED

    def update_quota(self, bound: int) -> None:
        """Use another bound, in bytes a second, from now on."""
        self._bound = bound

    def is_quota_exceeded(self, now_ms: float) -> bool:
        """Return whether the rate is above the bound."""
        return self._rate.measure(now_ms) > self._bound

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        """Return whether the replica of a partition on this broker is throttled."""
        text = self._throttled_replicas(topic_partition.topic)
        if not text:
            return False
        partitions = parse_throttled_partitions(text, self._broker_id)
        return partitions is None or topic_partition.partition in partitions

    def record(self, byte_count: int, now_ms: float) -> None:
        """Count bytes that were copied."""
        self._rate.record(byte_count, now_ms)

    def should_leader_throttle(self, partition: Partition, replica_id: int, now_ms: float) -> bool:
        """Return whether a follower gets no records now: never one that is in sync."""
        leader = partition.leader
        is_in_sync = leader is not None and replica_id in leader.state.members
        return (
            not is_in_sync
            and self.is_throttled(partition.topic_partition)
            and self.is_quota_exceeded(now_ms)
        )


class ReplicationQuotaManagers(NamedTuple):
    """The quotas of what is copied to other brokers, from them, and between log directories."""

    leader: ReplicationQuotaManager
    follower: ReplicationQuotaManager
    alter_log_dirs: ReplicationQuotaManager

    def update(self, configs: ConfigsImage, broker_id: int) -> None:
        """Take over the bounds: this broker's, or those of all brokers."""
        own = applied_values(configs.of(ResourceType.BROKER, str(broker_id)), is_for_all=False)
        of_all = applied_values(configs.of_cluster(), is_for_all=True)
        for manager, key in zip(
            self, (LEADER_RATE, FOLLOWER_RATE, ALTER_LOG_DIRS_RATE), strict=True
        ):
            manager.update_quota(_bound(key, own, of_all))


def new_replication_quota_managers(
    configs: Callable[[], ConfigsImage],
    broker_id: int,
    *,
    replication: MetricConfig,
    alter_log_dirs: MetricConfig,
) -> ReplicationQuotaManagers:
    """Return the quotas of a broker; `configs` returns the configuration as of now."""

    def of_topics(key: str) -> ReplicationQuotaManager:
        return ReplicationQuotaManager(
            replication, broker_id, lambda topic: configs().of_topic(topic).get(key, "")
        )

    # Every move between directories counts.
    moves = ReplicationQuotaManager(alter_log_dirs, broker_id, lambda _: _ALL_REPLICAS)
    return ReplicationQuotaManagers(of_topics(LEADER_REPLICAS), of_topics(FOLLOWER_REPLICAS), moves)


@lru_cache(maxsize=1024)
def parse_throttled_partitions(text: str, broker_id: int) -> frozenset[int] | None:
    """Return the partitions whose replica on a broker is throttled; None for all of them."""
    if text.strip() == _ALL_REPLICAS:
        return None
    pairs = (pair.split(":") for pair in text.strip().split(",") if pair.strip())
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)


def _bound(key: str, *layers: Mapping[str, str]) -> int:
    return next((int(layer[key]) for layer in layers if key in layer), UNLIMITED)
