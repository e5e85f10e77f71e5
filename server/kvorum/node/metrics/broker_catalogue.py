"""Every metric of a broker's records and of requests, with its description in one line."""

from types import MappingProxyType
from typing import Final

from kvorum.node.metrics.names import Kind, MetricGroup

SERVER_DOMAIN: Final = "kafka.server"
LOG_DOMAIN: Final = "kafka.log"
NETWORK_DOMAIN: Final = "kafka.network"
_TOPIC_METERS: Final = MappingProxyType(
    {
        "MessagesInPerSec": "Records that leaders here have appended",
        "BytesInPerSec": "Bytes of these records",
        "BytesOutPerSec": "Bytes of records sent to consumers",
        "BytesRejectedPerSec": "Bytes of records that were too large",
        "FailedProduceRequestsPerSec": "Appends that failed for another than the usual reasons",
        "TotalProduceRequestsPerSec": "Appends to a partition that producers asked for",
        "TotalFetchRequestsPerSec": "Reads of a partition that clients and followers asked for",
    }
)
BROKER_TOPICS: Final = MetricGroup(
    SERVER_DOMAIN,
    "BrokerTopicMetrics",
    {
        **_TOPIC_METERS,
        "FailedFetchRequestsPerSec": "Reads that failed for another than the usual reasons",
        "ReplicationBytesInPerSec": "Bytes of records fetched from other brokers",
        "ReplicationBytesOutPerSec": "Bytes of records sent to other brokers",
    },
    kind=Kind.METER,
)
BROKER_TOPIC: Final = MetricGroup(
    SERVER_DOMAIN, "BrokerTopicMetrics", _TOPIC_METERS, kind=Kind.METER, labels=("topic",)
)
"""Of one topic; like Kafka's, a topic has only those that are not 0."""
REQUESTS: Final = MetricGroup(
    NETWORK_DOMAIN,
    "RequestMetrics",
    {"RequestsPerSec": "Requests of an API in a version"},
    kind=Kind.METER,
    labels=("request", "version"),
)
REQUEST_ERRORS: Final = MetricGroup(
    NETWORK_DOMAIN,
    "RequestMetrics",
    {"ErrorsPerSec": "Error codes in responses, NONE too; without those that a controller made"},
    kind=Kind.METER,
    labels=("request", "error"),
)
REQUEST_TIMES: Final = MetricGroup(
    NETWORK_DOMAIN,
    "RequestMetrics",
    {
        "TotalTimeMs": "From a request's arrival until its response has left",
        "LocalTimeMs": "Of that, the time in which the event loop worked on the request",
        "RemoteTimeMs": "The time in which it waited: for records, replicas, or the controller",
        "ResponseSendTimeMs": "The time in which its response was encoded and sent",
        "ThrottleTimeMs": "How long its client has to wait for its quotas' sake",
        "RequestBytes": "Size of a request without its header",
    },
    kind=Kind.HISTOGRAM,
    labels=("request",),
)
REPLICA_MANAGER: Final = MetricGroup(
    SERVER_DOMAIN,
    "ReplicaManager",
    {
        "LeaderCount": "Partitions that this broker leads",
        "PartitionCount": "Partitions that this broker hosts",
        "OfflineReplicaCount": "Partitions whose log directory has failed",
        "UnderReplicatedPartitions": "Partitions led here with a replica that is not in sync",
        "UnderMinIsrPartitionCount": "Partitions led here that refuse acks=all",
        "AtMinIsrPartitionCount": "Partitions led here that would, with one less in sync",
        "ReassigningPartitions": "Partitions led here that are being reassigned",
    },
)
REPLICA_MANAGER_RATES: Final = MetricGroup(
    SERVER_DOMAIN,
    "ReplicaManager",
    {
        "IsrShrinksPerSec": "ISRs that became smaller by this leader's request",
        "IsrExpandsPerSec": "ISRs that became larger by this leader's request",
        "FailedIsrUpdatesPerSec": "Changes of an ISR that the controller has refused",
    },
    kind=Kind.METER,
)
REPLICA_FETCHERS: Final = MetricGroup(
    SERVER_DOMAIN,
    "ReplicaFetcherManager",
    {
        "MaxLag": "Most records that a partition here is behind its leader's high watermark",
        "FailedPartitionsCount": "Partitions that are not fetched any more after an error",
    },
    labels=("clientId",),
)
PURGATORIES: Final = MetricGroup(
    SERVER_DOMAIN,
    "DelayedOperationPurgatory",
    {
        "NumDelayedOperations": "Requests that wait for partitions",
        "PurgatorySize": "Partitions that they watch together",
    },
    labels=("delayedOperation",),
)
FETCH_SESSIONS: Final = MetricGroup(
    SERVER_DOMAIN,
    "FetchSessionCache",
    {
        "NumIncrementalFetchSessions": "Fetch sessions of clients",
        "NumIncrementalFetchPartitionsCached": "Partitions of these sessions",
    },
)
FETCH_SESSION_RATES: Final = MetricGroup(
    SERVER_DOMAIN,
    "FetchSessionCache",
    {"IncrementalFetchSessionEvictionsPerSec": "Fetch sessions that have made room for others"},
    kind=Kind.METER,
)
LOG: Final = MetricGroup(
    LOG_DOMAIN,
    "Log",
    {
        "Size": "Bytes of a partition's segments",
        "NumLogSegments": "Segments of a partition",
        "LogStartOffset": "First offset of a partition's log",
        "LogEndOffset": "Offset that the next record of a partition gets",
    },
    labels=("topic", "partition"),
)
LOG_MANAGER: Final = MetricGroup(
    LOG_DOMAIN, "LogManager", {"OfflineLogDirectoryCount": "Log directories that have failed"}
)
LOG_DIRECTORIES: Final = MetricGroup(
    LOG_DOMAIN,
    "LogManager",
    {"LogDirectoryOffline": "1 if the log directory has failed"},
    labels=("logDirectory",),
)
GROUP_METADATA: Final = MetricGroup(
    "kafka.coordinator.group",
    "GroupMetadataManager",
    {
        "NumOffsets": "Committed offsets of the groups that this broker coordinates",
        "NumGroups": "Groups that this broker coordinates",
        "NumGroupsPreparingRebalance": "Of these, groups whose members join",
        "NumGroupsCompletingRebalance": "Groups that wait for their leader's assignment",
        "NumGroupsStable": "Groups whose members have their assignments",
        "NumGroupsDead": "Groups that are being removed",
        "NumGroupsEmpty": "Groups without members",
    },
)
GROUP_COUNT: Final = MetricGroup(
    SERVER_DOMAIN,
    "group-coordinator-metrics",
    {"group-count": "Groups of a protocol that this broker coordinates"},
    has_attributes=True,
    labels=("protocol",),
)
BROKER_GROUPS: Final = (
    BROKER_TOPICS,
    BROKER_TOPIC,
    REQUESTS,
    REQUEST_ERRORS,
    REQUEST_TIMES,
    REPLICA_MANAGER,
    REPLICA_MANAGER_RATES,
    REPLICA_FETCHERS,
    PURGATORIES,
    FETCH_SESSIONS,
    FETCH_SESSION_RATES,
    LOG,
    LOG_MANAGER,
    LOG_DIRECTORIES,
    GROUP_METADATA,
    GROUP_COUNT,
)
