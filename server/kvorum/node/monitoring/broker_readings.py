"""The current values of the metrics of a broker's records, replicas and groups."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kvorum.broker.broker_topic_stats import BrokerTopicMetrics, BrokerTopicStats
from kvorum.broker.fetch_session.cache import FetchSessionCache
from kvorum.broker.partition import Partition
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.delayed_operation import Purgatories
from kvorum.node.broker.group_coordinator.group_coordination import GroupCoordination
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker_server import BrokerServer
from kvorum.node.metrics import broker_catalogue as catalogue
from kvorum.node.metrics.names import Reading
from kvorum.node.shared_server import SharedServer

REPLICA: Final = "Replica"
"""The client id by which Kafka tells its fetchers from those that move logs."""
CLASSIC: Final = "classic"
_STATES: Final = MappingProxyType(
    {
        "NumGroupsPreparingRebalance": "PreparingRebalance",
        "NumGroupsCompletingRebalance": "CompletingRebalance",
        "NumGroupsStable": "Stable",
        "NumGroupsDead": "Dead",
        "NumGroupsEmpty": "Empty",
    }
)


def record_readings(shared: SharedServer, server: BrokerServer) -> Iterator[Reading]:
    """Yield the values of the records that a broker has, gets and sends."""
    services = server.services
    replicas = services.replicas
    yield from _topics(replicas.stats.topics)
    yield from _replica_manager(replicas, shared.loader.published.topics)
    yield from _logs(replicas.partitions)
    yield from _log_directories(replicas, shared.directories.log_directories)
    yield from _purgatories(services.purgatories)
    yield from _fetch_sessions(services.fetch_sessions.cache)
    yield from _groups(services.group_coordination)


def _topics(stats: BrokerTopicStats) -> Iterator[Reading]:
    group = catalogue.BROKER_TOPICS
    for name, count in _named(stats.all_topics):
        yield group.reading(name, count)
    yield group.reading("FailedFetchRequestsPerSec", stats.failed_fetch_requests)
    yield group.reading("ReplicationBytesInPerSec", stats.replication_bytes_in)
    yield group.reading("ReplicationBytesOutPerSec", stats.replication_bytes_out)
    for topic, metrics in stats.topics.items():
        for name, count in _named(metrics):
            if count:
                yield catalogue.BROKER_TOPIC.reading(name, count, topic)


def _named(metrics: BrokerTopicMetrics) -> Iterator[tuple[str, int]]:
    yield "MessagesInPerSec", metrics.messages_in
    yield "BytesInPerSec", metrics.bytes_in
    yield "BytesOutPerSec", metrics.bytes_out
    yield "BytesRejectedPerSec", metrics.bytes_rejected
    yield "FailedProduceRequestsPerSec", metrics.failed_produce_requests
    yield "TotalProduceRequestsPerSec", metrics.total_produce_requests
    yield "TotalFetchRequestsPerSec", metrics.total_fetch_requests


def _replica_manager(replicas: ReplicaManager, topics: TopicsImage) -> Iterator[Reading]:
    group, partitions = catalogue.REPLICA_MANAGER, replicas.partitions
    led = [one for one in partitions if one.is_leader]
    leaders = [one.demand_leader() for one in led]
    behind = sum(one.is_under_replicated for one in leaders)
    yield group.reading("LeaderCount", len(led))
    yield group.reading("PartitionCount", len(partitions))
    yield group.reading("OfflineReplicaCount", sum(one.is_offline for one in partitions))
    yield group.reading("UnderReplicatedPartitions", behind)
    yield group.reading("UnderMinIsrPartitionCount", sum(one.is_under_min_isr for one in leaders))
    yield group.reading("AtMinIsrPartitionCount", sum(one.is_at_min_isr for one in leaders))
    yield group.reading("ReassigningPartitions", sum(_is_reassigning(one, topics) for one in led))
    rates, stats = catalogue.REPLICA_MANAGER_RATES, replicas.stats
    yield rates.reading("IsrShrinksPerSec", stats.isr_shrinks)
    yield rates.reading("IsrExpandsPerSec", stats.isr_expands)
    yield rates.reading("FailedIsrUpdatesPerSec", stats.failed_isr_updates)
    fetchers, failed = catalogue.REPLICA_FETCHERS, replicas.fetchers.failed_partition_count
    yield fetchers.reading("MaxLag", replicas.fetchers.max_lag, REPLICA)
    yield fetchers.reading("FailedPartitionsCount", failed, REPLICA)


def _is_reassigning(partition: Partition, topics: TopicsImage) -> bool:
    found = topics.partition(*partition.key)
    return found is not None and found.is_reassigning


def _logs(partitions: tuple[Partition, ...]) -> Iterator[Reading]:
    for partition in partitions:
        if partition.is_offline:
            continue
        (topic, index), log = partition.topic_partition, partition.log.local_log
        values = {
            "Size": log.size_bytes,
            "NumLogSegments": len(log.segments),
            "LogStartOffset": log.log_start_offset,
            "LogEndOffset": log.log_end_offset,
        }
        for name, value in values.items():
            yield catalogue.LOG.reading(name, value, topic, index)


def _log_directories(replicas: ReplicaManager, paths: tuple[Path, ...]) -> Iterator[Reading]:
    online = {one.path for one in replicas.log_directories}
    offline_count = sum(path not in online for path in paths)
    yield catalogue.LOG_MANAGER.reading("OfflineLogDirectoryCount", offline_count)
    for path in paths:
        name, is_offline = str(path.absolute()), int(path not in online)
        yield catalogue.LOG_DIRECTORIES.reading("LogDirectoryOffline", is_offline, name)


def _purgatories(purgatories: Purgatories) -> Iterator[Reading]:
    group = catalogue.PURGATORIES
    for name, purgatory in (
        ("Produce", purgatories.produce),
        ("Fetch", purgatories.fetch),
        ("DeleteRecords", purgatories.delete_records),
    ):
        yield group.reading("NumDelayedOperations", purgatory.delayed_count, name)
        yield group.reading("PurgatorySize", purgatory.watched_count, name)


def _fetch_sessions(cache: FetchSessionCache) -> Iterator[Reading]:
    group, rates = catalogue.FETCH_SESSIONS, catalogue.FETCH_SESSION_RATES
    yield group.reading("NumIncrementalFetchSessions", len(cache))
    yield group.reading("NumIncrementalFetchPartitionsCached", cache.partition_count)
    yield rates.reading("IncrementalFetchSessionEvictionsPerSec", cache.eviction_count)


def _groups(coordination: GroupCoordination) -> Iterator[Reading]:
    offset_count, states = 0, Counter[str]()
    for shard in coordination.active_shards():
        offset_count += shard.offsets.committed.count
        states.update(group.state.value for group in shard.state.groups.values())
    group = catalogue.GROUP_METADATA
    yield group.reading("NumOffsets", offset_count)
    yield group.reading("NumGroups", states.total())
    for name, state in _STATES.items():
        yield group.reading(name, states[state])
    yield catalogue.GROUP_COUNT.reading("group-count", states.total(), CLASSIC)
