"""The values that a controller or a broker has, taken off it at one moment."""

from __future__ import annotations

from collections.abc import Iterator

from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage
from kvorum.node.broker.part import BrokerPart
from kvorum.node.controller.part import ControllerPart
from kvorum.node.controller.shell import ControllerShell
from kvorum.node.core import NodeCore
from kvorum.node.metrics import catalogue
from kvorum.node.metrics.names import Reading
from kvorum.node.metrics.readings import connection_readings
from kvorum.node.snapshot_keeper import SnapshotKeeper

FENCED, IN_CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30
NO_TIMESTAMP = -1


def controller_readings(core: NodeCore, part: ControllerPart) -> Iterator[Reading]:
    """Yield what a controller measures; most of it also where it is not the active one."""
    image = core.loader.published
    counts, group = image.topics.counts, catalogue.KAFKA_CONTROLLER
    yield group.reading("ActiveControllerCount", int(part.is_active))
    yield group.reading("GlobalTopicCount", len(image.topics.by_id))
    yield group.reading("GlobalPartitionCount", counts.all)
    yield group.reading("OfflinePartitionsCount", counts.leaderless)
    yield group.reading("PreferredReplicaImbalanceCount", counts.not_preferred)
    yield group.reading("IgnoredStaticVoters", _ignored_static_voters(core))
    yield from _broker_counts(image.cluster)
    yield from _offsets(core, part.shell)
    yield from _work(core, part.shell)
    yield from _heartbeats(core, part.shell)
    yield catalogue.CONTROLLER_SERVER_TEXTS.reading("ClusterId", core.directories.cluster_id)
    yield from connection_readings(part.connection_counts())


def broker_readings(core: NodeCore, part: BrokerPart) -> Iterator[Reading]:
    """Yield what a broker measures."""
    group, loader = catalogue.BROKER_METADATA, core.loader
    timestamp_ms = loader.last_timestamp_ms
    yield group.reading("last-applied-record-offset", loader.published_offset)
    yield group.reading("last-applied-record-timestamp", timestamp_ms)
    yield group.reading("last-applied-record-lag-ms", core.clock.wall_ms() - timestamp_ms)
    yield group.reading("ignored-static-voters", _ignored_static_voters(core))
    yield catalogue.KAFKA_SERVER.reading("BrokerState", int(part.state))
    yield catalogue.KAFKA_SERVER_TEXTS.reading("ClusterId", core.directories.cluster_id)
    yield from connection_readings(part.connection_counts())


def snapshot_readings(core: NodeCore, keeper: SnapshotKeeper) -> Iterator[Reading]:
    """Yield what is known of the latest snapshot that this process wrote."""
    group = catalogue.SNAPSHOT_EMITTER
    age_ms = core.clock.monotonic_ms() - keeper.written_at_ms
    yield group.reading("LatestSnapshotGeneratedBytes", core.raft.snapshot_bytes)
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


def _offsets(core: NodeCore, shell: ControllerShell) -> Iterator[Reading]:
    group = catalogue.KAFKA_CONTROLLER
    timestamp_ms = core.loader.last_timestamp_ms
    if shell.is_active and shell.measures.last_append_ms is not None:
        timestamp_ms = max(timestamp_ms, shell.measures.last_append_ms)
    yield group.reading("LastCommittedRecordOffset", core.loader.last_offset)
    yield group.reading("LastAppliedRecordOffset", shell.applied_offset)
    yield group.reading("LastAppliedRecordTimestamp", timestamp_ms)
    yield group.reading("LastAppliedRecordLagMs", core.clock.wall_ms() - timestamp_ms)


def _work(core: NodeCore, shell: ControllerShell) -> Iterator[Reading]:
    measures, elections = shell.measures, core.loader.measures.elections
    controller, stats = catalogue.KAFKA_CONTROLLER, catalogue.CONTROLLER_STATS
    yield controller.reading("EventQueueOperationsStartedCount", measures.operation_count)
    yield controller.reading("EventQueueOperationsTimedOutCount", measures.late_count)
    yield controller.reading("MetadataErrorCount", measures.failure_count)
    yield controller.reading("NewActiveControllersCount", measures.new_leader_count)
    yield stats.reading("UncleanLeaderElectionsPerSec", elections.unclean)
    yield stats.reading("ElectionFromEligibleLeaderReplicasPerSec", elections.from_elr)
    times = catalogue.CONTROLLER_EVENT_TIMES
    yield times.reading("EventQueueTimeMs", measures.waiting_ms.distribution())
    yield times.reading("EventQueueProcessingTimeMs", measures.processing_ms.distribution())
    idle_ratio = measures.idle_ratio(core.clock.monotonic_ms())
    yield catalogue.CONTROLLER_EVENTS.reading("AvgIdleRatio", idle_ratio)


def _heartbeats(core: NodeCore, shell: ControllerShell) -> Iterator[Reading]:
    """Yield how long brokers have been silent, which only the active controller knows."""
    contacts_ms = shell.last_contacts_ms()
    if contacts_ms is None:
        return
    now_ms, most_ms = core.clock.monotonic_ms(), shell.settings.session_timeout_ms
    for broker in core.loader.published.cluster.sorted_brokers():
        contact_ms = contacts_ms.get((broker.id, broker.epoch))
        silent_ms = most_ms if contact_ms is None else min(now_ms - contact_ms, most_ms)
        yield catalogue.KAFKA_CONTROLLER_BROKERS.reading(
            "TimeSinceLastHeartbeatReceivedMs", silent_ms, broker.id
        )


def _ignored_static_voters(core: NodeCore) -> int:
    metrics = core.raft.metrics
    return int(metrics is not None and metrics.is_static_set_ignored)
