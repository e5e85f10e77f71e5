"""The current values of the metrics of a node: of every node, of a controller, of a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kvorum.broker.broker_topic_stats import BrokerTopicMetrics, BrokerTopicStats
from kvorum.broker.fetch_session.session import FetchSessionCache
from kvorum.broker.partition import Partition
from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.consumer_group.group import ConsumerGroup, ConsumerGroupState
from kvorum.groups.listing import CLASSIC, CONSUMER, SHARE
from kvorum.groups.share_group.group import ShareGroupState
from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage
from kvorum.metadata.features import KRAFT_VERSION_FEATURE, VersionRange
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.group_coordinator.share_group_rebalances import ShareGroupRebalances
from kvorum.node.broker.purgatories import Purgatories
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.transaction_verification import AddPartitionsToTxnManager
from kvorum.node.broker_server import BrokerServer
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.controller_server import ControllerServer
from kvorum.node.metadata_loader import MetadataLoader, SnapshotGenerator
from kvorum.node.metrics import catalogue
from kvorum.node.metrics.names import MetricGroup, Reading
from kvorum.node.metrics.sensors import WindowedSensor
from kvorum.node.monitoring.share_readings import (
    share_fetch_readings,
    share_session_readings,
    share_state_readings,
)
from kvorum.node.raft import RaftNode
from kvorum.node.raft.measures import RaftMeasures
from kvorum.node.serving.request_metrics import RequestChannelMetrics, RequestMetrics
from kvorum.node.serving.socket_server import SocketServer
from kvorum.node.shared_server import SharedServer
from kvorum.raft.metrics import RaftMetrics
from kvorum.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from kvorum.node.broker.group_coordinator.group_coordinator_service import (
        GroupCoordinatorService,
    )
    from kvorum.node.broker.group_coordinator.share_group_service import ShareGroupService
    from kvorum.node.broker.share_coordinator.share_coordinator_service import (
        ShareCoordinatorService,
    )
    from kvorum.node.broker.transaction_coordinator.transaction_coordinator_service import (
        TransactionCoordinatorService,
    )

NO_CONTROLLER = -1
ONLY_PROCESSOR: Final = 0
"""Kafka counts the connections of each of its network threads; here there is one."""
_RAFT_TEXTS = frozenset(metric.name for metric in catalogue.RAFT_TEXTS.metrics)
_RAFT_NUMBERS = frozenset(metric.name for metric in catalogue.RAFT.metrics)
_OF_KIP_853 = frozenset(metric.name for metric in catalogue.KIP_853.metrics)
_ERROR_NAMES: Final = {int(code): code.name for code in ErrorCode}
REPLICA: Final = "Replica"
"""The client id by which Kafka tells its fetchers from those that move logs."""
LATE_TRANSACTION_BUFFER_MS: Final = 300_000
"""The time after its longest time-out from which on Kafka calls an open transaction late."""
_STATES: Final = MappingProxyType(
    {
        "NumGroupsPreparingRebalance": "PreparingRebalance",
        "NumGroupsCompletingRebalance": "CompletingRebalance",
        "NumGroupsStable": "Stable",
        "NumGroupsDead": "Dead",
        "NumGroupsEmpty": "Empty",
    }
)
_COUNTED_SHARE_STATES: Final = (
    ShareGroupState.EMPTY,
    ShareGroupState.STABLE,
    ShareGroupState.DEAD,
)
"""Kafka has no count of the share groups in an unknown state."""
FENCED, IN_CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30
NO_TIMESTAMP = -1


def raft_readings(raft: RaftNode, now_ms: float) -> Iterator[Reading]:
    """Yield the values of the replica."""
    yield from _raft_state(raft.metrics)
    yield from _raft_measures(raft.measures, now_ms)


def _raft_state(metrics: RaftMetrics) -> Iterator[Reading]:
    for name, value in metrics.named().items():
        if name in _RAFT_TEXTS:
            yield catalogue.RAFT_TEXTS.reading(name, value)
        elif name in _RAFT_NUMBERS:
            yield catalogue.RAFT.reading(name, value)
        elif name in _OF_KIP_853:
            yield catalogue.KIP_853.reading(name, value)


def _raft_measures(measures: RaftMeasures, now_ms: float) -> Iterator[Reading]:
    raft = catalogue.RAFT
    commits, elections = measures.commit_latency_ms, measures.election_latency_ms
    yield raft.reading("commit-latency-avg", commits.average(now_ms))
    yield raft.reading("commit-latency-max", commits.maximum(now_ms))
    yield raft.reading("election-latency-avg", elections.average(now_ms))
    yield raft.reading("election-latency-max", elections.maximum(now_ms))
    yield raft.reading("fetch-records-rate", measures.fetched_records.rate_per_second(now_ms))
    yield raft.reading("append-records-rate", measures.appended_records.rate_per_second(now_ms))


def loader_readings(loader: MetadataLoader, raft: RaftNode, now_ms: float) -> Iterator[Reading]:
    """Yield the values of the loader, and the finalized features."""
    features, leader_id = loader.published.features, raft.leader_id
    group = catalogue.METADATA_LOADER
    if features.metadata_version is not None:
        yield group.reading("CurrentMetadataVersion", int(features.metadata_version))
    yield group.reading("CurrentControllerId", NO_CONTROLLER if leader_id is None else leader_id)
    yield group.reading("HandleLoadSnapshotCount", loader.measures.snapshot_count)
    yield group.reading("AvgIdleRatio", loader.measures.idle_ratio(now_ms))
    levels = {**features.all_levels(), KRAFT_VERSION_FEATURE: raft.kraft_version}
    for name, level in levels.items():
        yield catalogue.FINALIZED_LEVELS.reading("FinalizedLevel", level, in_camel_case(name))


def batch_readings(loader: MetadataLoader) -> Iterator[Reading]:
    """Yield the values about applied batches, which Kafka has on brokers only."""
    group, measures = catalogue.METADATA_BATCHES, loader.measures
    yield group.reading("MetadataBatchProcessingTimeUs", measures.batch_us.distribution())
    yield group.reading("MetadataBatchSizes", measures.batch_sizes.distribution())


def supported_readings(supported: Mapping[str, VersionRange]) -> Iterator[Reading]:
    """Yield the supported levels of features."""
    for feature, levels in supported.items():
        name = feature.replace(".", "-")
        yield catalogue.SUPPORTED_LEVELS.reading("maximum-supported-level", levels.max, name)
        yield catalogue.SUPPORTED_LEVELS.reading("minimum-supported-level", levels.min, name)


def stall_readings(raft: RaftNode) -> Iterator[Reading]:
    """Yield the number and the total time of stalls of the process."""
    yield catalogue.OWN_COUNTS.reading("event_loop_stalls", raft.stall_count)
    yield catalogue.OWN_COUNTS.reading("event_loop_stalled_ms", raft.stalled_ms)


def connection_readings(servers: Mapping[str, SocketServer], now_ms: float) -> Iterator[Reading]:
    """Yield the numbers of open connections and of authentications by listener."""
    group = catalogue.CONNECTIONS
    for listener, server in servers.items():
        done = server.authentications
        latency_ms = done.repeat_latency_ms
        values = {
            "connection-count": server.connection_count,
            "successful-authentication-total": done.successful_count,
            "successful-authentication-no-reauth-total": done.unrepeatable_count,
            "failed-authentication-total": done.failed_count,
            "successful-reauthentication-total": done.repeated_count,
            "failed-reauthentication-total": done.failed_repeat_count,
            "reauthentication-latency-avg": latency_ms.average(now_ms),
            "reauthentication-latency-max": latency_ms.maximum(now_ms),
            "expired-connections-killed-count": done.expired_count,
        }
        for name, value in values.items():
            yield group.reading(name, value, listener, ONLY_PROCESSOR)


def request_readings(metrics: RequestChannelMetrics) -> Iterator[Reading]:
    """Yield the values of each kind of requests that there have been."""
    for name, requests in metrics.by_name.items():
        yield from _readings_of_kind(name, requests)


def _readings_of_kind(name: str, requests: RequestMetrics) -> Iterator[Reading]:
    for version, count in requests.by_version.items():
        yield catalogue.REQUESTS.reading("RequestsPerSec", count, name, version)
    for code, count in requests.errors.items():
        error = _ERROR_NAMES.get(code, str(code))
        yield catalogue.REQUEST_ERRORS.reading("ErrorsPerSec", count, name, error)
    group, times = catalogue.REQUEST_TIMES, requests.times
    yield group.reading("TotalTimeMs", times.total_time, name)
    yield group.reading("LocalTimeMs", times.local_time, name)
    yield group.reading("RemoteTimeMs", times.remote_time, name)
    yield group.reading("ResponseSendTimeMs", times.send_time, name)
    yield group.reading("ThrottleTimeMs", times.throttle_time, name)
    yield group.reading("RequestBytes", times.request_bytes, name)


def in_camel_case(feature: str) -> str:
    """Return the name of a feature in camel case, which Kafka uses only in this metric."""
    first, *others = feature.split(".")
    return first + "".join(word[:1].upper() + word[1:].lower() for word in others)


def record_readings(shared: SharedServer, server: BrokerServer) -> Iterator[Reading]:
    """Yield the values of the records that a broker has, gets and sends."""
    services = server.services
    replicas = services.replicas
    yield from _topics(replicas.topic_stats)
    yield from _replica_manager(replicas, shared.loader.published.topics)
    yield from _logs(replicas.partitions)
    yield from _log_directories(replicas, shared.directories.log_directories)
    yield from _purgatories(services.purgatories)
    yield from _fetch_sessions(services.fetch_sessions.cache)
    yield from share_session_readings(services.fetched_shares.part_if_made)
    yield from share_fetch_readings(
        services.fetched_shares.part_if_made, services.purgatories.share_fetch
    )
    yield from _late_transactions(replicas, shared)
    now_ms = shared.clock.monotonic_ms()
    groups = services.coordinated_groups.service_if_made
    yield from group_readings(groups)
    share_groups = services.coordinated_share_groups.part_if_made
    yield from share_rebalance_readings(share_groups, now_ms)
    transactions = services.coordinated_transactions.service_if_made
    yield from _loads(catalogue.GROUP_LOADS, groups, now_ms)
    yield from _loads(catalogue.TRANSACTION_LOADS, transactions, now_ms)
    shares = services.coordinated_shares.service_if_made
    yield from _loads(catalogue.SHARE_LOADS, shares, now_ms)
    yield from share_state_readings(shares, now_ms)
    yield from _transactions(transactions)
    yield from _verifications(server.add_partitions_to_txn)


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
    yield "TotalShareFetchRequestsPerSec", metrics.total_share_fetch_requests
    yield "FailedShareFetchRequestsPerSec", metrics.failed_share_fetch_requests
    yield (
        "TotalShareAcknowledgementRequestsPerSec",
        metrics.total_share_acknowledgement_requests,
    )
    yield (
        "FailedShareAcknowledgementRequestsPerSec",
        metrics.failed_share_acknowledgement_requests,
    )


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
    rates, changes = catalogue.REPLICA_MANAGER_RATES, replicas.isr_changes
    yield rates.reading("IsrShrinksPerSec", changes.shrink_count)
    yield rates.reading("IsrExpandsPerSec", changes.expand_count)
    yield rates.reading("FailedIsrUpdatesPerSec", changes.failure_count)
    fetchers, failed = catalogue.REPLICA_FETCHERS, replicas.fetchers.failed_partition_count
    yield fetchers.reading("MaxLag", replicas.fetchers.max_lag, REPLICA)
    yield fetchers.reading("FailedPartitionsCount", failed, REPLICA)


def _late_transactions(replicas: ReplicaManager, shared: SharedServer) -> Iterator[Reading]:
    begun_before_ms = (
        shared.clock.wall_ms()
        - shared.config.transactions.timeout_ms_max
        - LATE_TRANSACTION_BUFFER_MS
    )
    online = [one for one in replicas.partitions if not one.is_offline]
    producer_count = sum(len(one.log.producers.entries) for one in online)
    late_count = sum(
        one.is_leader and one.log.producers.has_late_transaction(begun_before_ms) for one in online
    )
    group = catalogue.REPLICA_MANAGER
    yield group.reading("ProducerIdCount", producer_count)
    yield group.reading("PartitionsWithLateTransactionsCount", late_count)


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
        ("ShareFetch", purgatories.share_fetch),
    ):
        yield group.reading("NumDelayedOperations", purgatory.delayed_count, name)
        yield group.reading("PurgatorySize", purgatory.watched_count, name)


def _fetch_sessions(cache: FetchSessionCache) -> Iterator[Reading]:
    group, rates = catalogue.FETCH_SESSIONS, catalogue.FETCH_SESSION_RATES
    yield group.reading("NumIncrementalFetchSessions", len(cache))
    yield group.reading("NumIncrementalFetchPartitionsCached", cache.partition_count)
    yield rates.reading("IncrementalFetchSessionEvictionsPerSec", cache.eviction_count)


def group_readings(service: GroupCoordinatorService | None) -> Iterator[Reading]:
    """Yield the counts of groups, all zero before there is a coordinator."""
    offset_count, states = 0, Counter[str]()
    of_consumers, of_shares = Counter[ConsumerGroupState](), Counter[ShareGroupState]()
    for shard in () if service is None else service.runtime.active_shards():
        offset_count += shard.offsets.committed.count
        for one in shard.state.groups.values():
            if isinstance(one, ClassicGroup):
                states[one.state.value] += 1
            elif isinstance(one, ConsumerGroup):
                of_consumers[one.state()] += 1
            else:
                of_shares[one.state()] += 1
    group = catalogue.GROUP_METADATA
    yield group.reading("NumOffsets", offset_count)
    yield group.reading("NumGroups", states.total())
    for name, state in _STATES.items():
        yield group.reading(name, states[state])
    yield catalogue.GROUP_COUNT.reading("group-count", states.total(), CLASSIC)
    yield catalogue.GROUP_COUNT.reading("group-count", of_consumers.total(), CONSUMER)
    yield catalogue.GROUP_COUNT.reading("group-count", of_shares.total(), SHARE)
    for consumer_state in ConsumerGroupState:
        yield catalogue.CONSUMER_GROUP_COUNT.reading(
            "consumer-group-count", of_consumers[consumer_state], consumer_state.value
        )
    for share_state in _COUNTED_SHARE_STATES:
        yield catalogue.SHARE_GROUP_COUNT.reading(
            "share-group-count", of_shares[share_state], share_state.value
        )


def share_rebalance_readings(service: ShareGroupService | None, now_ms: float) -> Iterator[Reading]:
    """Yield how often share groups got new epochs, and how fast."""
    group = catalogue.SHARE_GROUP_REBALANCES
    rebalances = ShareGroupRebalances(now_ms) if service is None else service.rebalances
    yield group.reading("share-group-rebalance-rate", rebalances.sensor.rate_per_second(now_ms))
    yield group.reading("share-group-rebalance-count", rebalances.count)


def _loads(
    group: MetricGroup,
    service: GroupCoordinatorService
    | TransactionCoordinatorService
    | ShareCoordinatorService
    | None,
    now_ms: float,
) -> Iterator[Reading]:
    times_ms = WindowedSensor(now_ms) if service is None else service.runtime.load_times_ms
    yield group.reading("partition-load-time-max", times_ms.maximum(now_ms))
    yield group.reading("partition-load-time-avg", times_ms.average(now_ms))


def _transactions(service: TransactionCoordinatorService | None) -> Iterator[Reading]:
    group = catalogue.TRANSACTION_MARKERS
    leaderless_count = 0 if service is None else service.leaderless_count
    late_count = 0 if service is None else service.late_completion_count
    yield group.reading("UnknownDestinationQueueSize", leaderless_count)
    yield group.reading("LogAppendRetryQueueSize", late_count)


def _verifications(manager: AddPartitionsToTxnManager) -> Iterator[Reading]:
    times, refused = manager.verification_times_ms.distribution(), manager.refused_count
    yield catalogue.VERIFICATION_TIMES.reading("VerificationTimeMs", times)
    yield catalogue.VERIFICATION_FAILURES.reading("VerificationFailureRate", refused)


def controller_readings(shared: SharedServer, server: ControllerServer) -> Iterator[Reading]:
    """Yield the values of a controller; an inactive one has most of them too."""
    image = shared.loader.published
    counts, group = image.topics.counts, catalogue.KAFKA_CONTROLLER
    yield group.reading("ActiveControllerCount", int(server.controller.is_active))
    yield group.reading("GlobalTopicCount", len(image.topics.by_id))
    yield group.reading("GlobalPartitionCount", counts.all)
    yield group.reading("OfflinePartitionsCount", counts.leaderless)
    yield group.reading("PreferredReplicaImbalanceCount", counts.not_preferred)
    yield group.reading("IgnoredStaticVoters", _ignored_static_voters(shared))
    yield from _broker_counts(image.cluster)
    yield from _offsets(shared, server.controller)
    yield from _work(shared, server.controller)
    yield from _heartbeats(shared, server.controller)
    yield from _reassignment(server)
    yield catalogue.CONTROLLER_SERVER_TEXTS.reading("ClusterId", shared.directories.cluster_id)
    yield from connection_readings(server.socket_servers, shared.clock.monotonic_ms())


def broker_readings(shared: SharedServer, server: BrokerServer) -> Iterator[Reading]:
    """Yield the values of a broker."""
    group, loader = catalogue.BROKER_METADATA, shared.loader
    timestamp_ms = loader.last_timestamp_ms
    yield group.reading("last-applied-record-offset", loader.published_offset)
    yield group.reading("last-applied-record-timestamp", timestamp_ms)
    yield group.reading("last-applied-record-lag-ms", shared.clock.wall_ms() - timestamp_ms)
    yield group.reading("metadata-apply-error-count", loader.measures.publishing_fault_count)
    yield group.reading("ignored-static-voters", _ignored_static_voters(shared))
    yield catalogue.KAFKA_SERVER.reading("BrokerState", int(server.lifecycle_manager.state))
    yield catalogue.KAFKA_SERVER_TEXTS.reading("ClusterId", shared.directories.cluster_id)
    yield from connection_readings(server.socket_servers, shared.clock.monotonic_ms())


def snapshot_readings(shared: SharedServer, keeper: SnapshotGenerator) -> Iterator[Reading]:
    """Yield the values of the latest snapshot that this process wrote."""
    group = catalogue.SNAPSHOT_EMITTER
    age_ms = shared.clock.monotonic_ms() - keeper.written_at_ms
    yield group.reading("LatestSnapshotGeneratedBytes", shared.raft.snapshot_bytes)
    yield group.reading("LatestSnapshotGeneratedAgeMs", age_ms)


def _broker_counts(cluster: ClusterImage) -> Iterator[Reading]:
    brokers = cluster.brokers.values()
    fenced_count = sum(broker.is_fenced for broker in brokers)
    stopping_count = sum(broker.is_in_controlled_shutdown for broker in brokers)
    group = catalogue.KAFKA_CONTROLLER
    yield group.reading("FencedBrokerCount", fenced_count)
    yield group.reading("ActiveBrokerCount", len(cluster.brokers) - fenced_count)
    yield group.reading("ControlledShutdownBrokerCount", stopping_count)
    for broker in cluster.sorted_brokers():
        yield catalogue.KAFKA_CONTROLLER_BROKERS.reading(
            "BrokerRegistrationState", _registration_state(broker), broker.id
        )


def _registration_state(broker: BrokerRegistration) -> int:
    if broker.is_fenced:
        return FENCED
    return IN_CONTROLLED_SHUTDOWN if broker.is_in_controlled_shutdown else ACTIVE


def _offsets(shared: SharedServer, controller: QuorumController) -> Iterator[Reading]:
    group = catalogue.KAFKA_CONTROLLER
    timestamp_ms = shared.loader.last_timestamp_ms
    if controller.is_active and controller.measures.last_append_ms is not None:
        timestamp_ms = max(timestamp_ms, controller.measures.last_append_ms)
    yield group.reading("LastCommittedRecordOffset", shared.loader.last_offset)
    yield group.reading("LastAppliedRecordOffset", controller.applied_offset)
    yield group.reading("LastAppliedRecordTimestamp", timestamp_ms)
    yield group.reading("LastAppliedRecordLagMs", shared.clock.wall_ms() - timestamp_ms)


def _work(shared: SharedServer, controller: QuorumController) -> Iterator[Reading]:
    measures, loaded = controller.measures, shared.loader.measures
    group, stats = catalogue.KAFKA_CONTROLLER, catalogue.CONTROLLER_STATS
    yield group.reading("EventQueueOperationsStartedCount", measures.operation_count)
    yield group.reading("EventQueueOperationsTimedOutCount", measures.late_count)
    fault_count = measures.failure_count + loaded.publishing_fault_count
    yield group.reading("MetadataErrorCount", fault_count)
    yield group.reading("NewActiveControllersCount", measures.new_leader_count)
    yield stats.reading("UncleanLeaderElectionsPerSec", loaded.elections.unclean)
    yield stats.reading("ElectionFromEligibleLeaderReplicasPerSec", loaded.elections.from_elr)
    times = catalogue.CONTROLLER_EVENT_TIMES
    yield times.reading("EventQueueTimeMs", measures.waiting_ms.distribution())
    yield times.reading("EventQueueProcessingTimeMs", measures.processing_ms.distribution())
    idle_ratio = measures.idle_ratio(shared.clock.monotonic_ms())
    yield catalogue.CONTROLLER_EVENTS.reading("AvgIdleRatio", idle_ratio)


def _heartbeats(shared: SharedServer, controller: QuorumController) -> Iterator[Reading]:
    """Yield the time since each broker's last heartbeat, which only the active controller knows."""
    contacts_ms = controller.last_contacts_ms()
    if contacts_ms is None:
        return
    now_ms, most_ms = shared.clock.monotonic_ms(), controller.settings.session_timeout_ms
    for broker in shared.loader.published.cluster.sorted_brokers():
        contact_ms = contacts_ms.get((broker.id, broker.epoch))
        silent_ms = most_ms if contact_ms is None else min(now_ms - contact_ms, most_ms)
        yield catalogue.KAFKA_CONTROLLER_BROKERS.reading(
            "TimeSinceLastHeartbeatReceivedMs", silent_ms, broker.id
        )


def _reassignment(server: ControllerServer) -> Iterator[Reading]:
    """Yield how far the quorum is from its target voters.

    The active controller knows, and each of ours while the leader does not act on the target
    voters.
    """
    found, group = server.reassignment.describe(), catalogue.OWN_REASSIGNMENT
    if not server.controller.is_active:
        found = server.reassignment.describe_as_proxy()
        if found is None:
            return
    adding, removing, reason = (
        (0, 0, 0)
        if found is None
        else (found.adding_count, found.removing_count, found.reason_code)
    )
    yield group.reading("quorum_reassignment_adding_voters", adding)
    yield group.reading("quorum_reassignment_removing_voters", removing)
    yield group.reading("quorum_reassignment_blocked_reason", reason)


def _ignored_static_voters(shared: SharedServer) -> int:
    return int(shared.raft.metrics.is_static_set_ignored)
