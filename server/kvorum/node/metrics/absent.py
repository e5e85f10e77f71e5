"""Kafka's metrics that kvorum does not have, with the reason: the complement of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EVERY = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """Metrics of one type of bean; empty `names` stand for all that the catalogue lacks."""

    domain: str
    type: str
    names: frozenset[str]
    reason: str


def _absent(domain: str, types: str, reason: str, *, names: str = EVERY) -> tuple[Absent, ...]:
    return tuple(
        Absent(domain, bean_type, frozenset(names.split()), reason) for bean_type in types.split()
    )


_NO_PARTITIONS: Final = "the partitions of brokers are not measured yet"
_NO_COORDINATOR: Final = "coordinators are not measured yet; there is none but that of groups"
_NOT_BY_REQUEST: Final = "requests are not timed one by one"
_NOT_BY_CLIENT: Final = "requests to other nodes are not counted"
_OF_THE_JVM: Final = "internal to Kafka's process; process_… and python_… describe this one"

ABSENT: Final[tuple[Absent, ...]] = (
    *_absent(
        "kafka.controller",
        "KafkaController",
        "heartbeats have no time limit here",
        names="TimedOutBrokerHeartbeatCount",
    ),
    *_absent(
        "kafka.server",
        "raft-metrics",
        "it has no thread of its own; process_cpu_seconds_total shows how busy the process is",
        names="poll-idle-ratio-avg",
    ),
    *_absent(
        "kafka.server",
        "broker-metadata-metrics",
        "a node that cannot read its metadata stops",
        names="metadata-load-error-count metadata-apply-error-count",
    ),
    *_absent(
        "kafka.server",
        "KafkaServer ControllerServer",
        _OF_THE_JVM,
        names="linux-disk-read-bytes linux-disk-write-bytes yammer-metrics-count",
    ),
    *_absent("kafka.server", "socket-server-metrics", _NOT_BY_REQUEST),
    *_absent("kafka.network", "RequestMetrics RequestChannel", _NOT_BY_REQUEST),
    *_absent("kafka.network", "Acceptor Processor SocketServer", _OF_THE_JVM),
    *_absent("kafka.server", "KafkaRequestHandlerPool app-info kafka-metrics-count", _OF_THE_JVM),
    *_absent("kafka", "kafka.Log4jController", _OF_THE_JVM),
    *_absent(
        "kafka.server",
        "raft-channel-metrics alter-partition-metrics directory-assignments-metrics "
        "forwarding-metrics heartbeat-metrics registration-metrics ForwardingManager "
        "AddPartitionsManager-channel-metrics Persister-channel-metrics "
        "txn-marker-channel-metrics",
        _NOT_BY_CLIENT,
    ),
    *_absent(
        "kafka.server",
        "ReplicaManager ReplicaFetcherManager ReplicaAlterLogDirsManager BrokerTopicMetrics "
        "AssignmentsManager DelayedOperationPurgatory DelayedProduceMetrics "
        "DelayedRemoteListOffsetsMetrics FetchSessionCache Fetch Produce Request "
        "ControllerMutation client-metrics",
        _NO_PARTITIONS,
    ),
    *_absent("org.apache.kafka.server", "AssignmentsManager", _NO_PARTITIONS),
    *_absent(
        "kafka.log", "Log LogCleaner LogCleanerManager LogFlushStats LogManager", _NO_PARTITIONS
    ),
    *_absent("kafka.cluster", "Partition", _NO_PARTITIONS),
    *_absent("kafka.utils", "Throttler", _NO_PARTITIONS),
    *_absent(
        "kafka.server",
        "group-coordinator-metrics share-coordinator-metrics transaction-coordinator-metrics "
        "ShareGroupMetrics ShareSessionCache AddPartitionsToTxnManager",
        _NO_COORDINATOR,
    ),
    *_absent("kafka.coordinator.group", "GroupMetadataManager", _NO_COORDINATOR),
    *_absent("kafka.coordinator.transaction", "TransactionMarkerChannelManager", _NO_COORDINATOR),
)
