"""The current values of the metrics of a controller or a broker."""

from collections.abc import Iterator

from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage
from kvorum.node.broker_server import BrokerServer
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.controller_server import ControllerServer
from kvorum.node.metrics import catalogue
from kvorum.node.metrics.names import Reading
from kvorum.node.monitoring.readings import connection_readings
from kvorum.node.shared_server import SharedServer
from kvorum.node.snapshot_generator import SnapshotGenerator

FENCED, IN_CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30
NO_TIMESTAMP = -1


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
    yield from connection_readings(server.connection_counts())


def broker_readings(shared: SharedServer, server: BrokerServer) -> Iterator[Reading]:
    """Yield the values of a broker."""
    group, loader = catalogue.BROKER_METADATA, shared.loader
    timestamp_ms = loader.last_timestamp_ms
    yield group.reading("last-applied-record-offset", loader.published_offset)
    yield group.reading("last-applied-record-timestamp", timestamp_ms)
    yield group.reading("last-applied-record-lag-ms", shared.clock.wall_ms() - timestamp_ms)
    yield group.reading("ignored-static-voters", _ignored_static_voters(shared))
    yield catalogue.KAFKA_SERVER.reading("BrokerState", int(server.lifecycle_manager.state))
    yield catalogue.KAFKA_SERVER_TEXTS.reading("ClusterId", shared.directories.cluster_id)
    yield from connection_readings(server.connection_counts())


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
    measures, elections = controller.measures, shared.loader.measures.elections
    group, stats = catalogue.KAFKA_CONTROLLER, catalogue.CONTROLLER_STATS
    yield group.reading("EventQueueOperationsStartedCount", measures.operation_count)
    yield group.reading("EventQueueOperationsTimedOutCount", measures.late_count)
    yield group.reading("MetadataErrorCount", measures.failure_count)
    yield group.reading("NewActiveControllersCount", measures.new_leader_count)
    yield stats.reading("UncleanLeaderElectionsPerSec", elections.unclean)
    yield stats.reading("ElectionFromEligibleLeaderReplicasPerSec", elections.from_elr)
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
