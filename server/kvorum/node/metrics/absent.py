"""Kafka's metrics that kvorum does not have, with the reason: the complement of the catalogue."""

from dataclasses import dataclass
from typing import Final

EVERY = ""
_NOT_OF_RECORDS: Final = "not measured yet"
_NOT_BY_QUOTA: Final = "what single clients use of their quotas is not shown"
_NOT_BY_CONNECTION: Final = "connections are counted, and not measured one by one"
_NO_QUEUES: Final = "requests do not go from thread to thread here, so that there are no queues"
_NOT_BY_CLIENT: Final = "requests to other nodes are not counted"
_OF_THE_JVM: Final = "internal to Kafka's process; process_… and python_… describe this one"


@dataclass(frozen=True, slots=True)
class Absent:
    """Metrics of one type of bean; empty `names` mean all that the catalogue lacks."""

    domain: str
    type: str
    names: frozenset[str]
    reason: str


def _absent(domain: str, types: str, reason: str, *, names: str = EVERY) -> tuple[Absent, ...]:
    return tuple(
        Absent(domain, bean_type, frozenset(names.split()), reason) for bean_type in types.split()
    )


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
        names="metadata-load-error-count",
    ),
    *_absent(
        "kafka.server",
        "KafkaServer ControllerServer",
        _OF_THE_JVM,
        names="linux-disk-read-bytes linux-disk-write-bytes linux-disk-cancelled-write-bytes "
        "linux-disk-rchar linux-disk-wchar linux-disk-syscr linux-disk-syscw yammer-metrics-count",
    ),
    *_absent("kafka.server", "socket-server-metrics", _NOT_BY_CONNECTION),
    *_absent(
        "kafka.network",
        "RequestMetrics",
        _NO_QUEUES,
        names="RequestQueueTimeMs ResponseQueueTimeMs",
    ),
    *_absent(
        "kafka.network",
        "RequestMetrics",
        "records are not converted, and a request's memory is not counted",
        names="MessageConversionsTimeMs TemporaryMemoryBytes",
    ),
    *_absent("kafka.network", "RequestChannel", _NO_QUEUES),
    *_absent("kafka.network", "Acceptor Processor SocketServer", _OF_THE_JVM),
    *_absent("kafka.server", "KafkaRequestHandlerPool app-info kafka-metrics-count", _OF_THE_JVM),
    *_absent("kafka", "kafka.Log4jController", _OF_THE_JVM),
    *_absent(
        "kafka.server",
        "raft-channel-metrics alter-partition-metrics directory-assignments-metrics "
        "forwarding-metrics heartbeat-metrics registration-metrics ForwardingManager "
        "AddPartitionsManager-channel-metrics Persister-channel-metrics "
        "txn-marker-channel-metrics ShareGroupDLQManager-channel-metrics",
        _NOT_BY_CLIENT,
    ),
    *_absent(
        "kafka.server",
        "ReplicaFetcherManager ReplicaAlterLogDirsManager BrokerTopicMetrics "
        "AssignmentsManager DelayedProduceMetrics DelayedRemoteListOffsetsMetrics client-metrics",
        _NOT_OF_RECORDS,
    ),
    *_absent("kafka.server", "Fetch Produce Request ControllerMutation", _NOT_BY_QUOTA),
    *_absent("org.apache.kafka.server", "AssignmentsManager", _NOT_OF_RECORDS),
    *_absent(
        "kafka.log", "Log LogCleaner LogCleanerManager LogFlushStats LogManager", _NOT_OF_RECORDS
    ),
    *_absent("kafka.cluster", "Partition", _NOT_OF_RECORDS),
    *_absent("kafka.utils", "Throttler", _NOT_OF_RECORDS),
    *_absent(
        "kafka.server",
        "group-coordinator-metrics share-coordinator-metrics",
        _NOT_OF_RECORDS,
    ),
)
