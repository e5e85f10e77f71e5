"""Every metric of a node, with its description in one line."""

from types import MappingProxyType
from typing import Final

from kvorum.node.metrics import share_catalogue
from kvorum.node.metrics.names import OWN_DOMAIN, SERVER_DOMAIN, Kind, Metric, MetricGroup

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
        "TotalShareFetchRequestsPerSec": "Fetches of members of share groups, once for each topic",
        "FailedShareFetchRequestsPerSec": "Of these, those of which partitions were refused",
        "TotalShareAcknowledgementRequestsPerSec": (
            "Requests that acknowledge records of share groups, once for each topic"
        ),
        "FailedShareAcknowledgementRequestsPerSec": (
            "Of these, those of which partitions were refused"
        ),
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
        "ProducerIdCount": "Producers that the logs of this broker know of",
        "PartitionsWithLateTransactionsCount": (
            "Partitions led here with a transaction open for longer than it may be"
        ),
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
CONSUMER_GROUP_COUNT: Final = MetricGroup(
    SERVER_DOMAIN,
    "group-coordinator-metrics",
    {"consumer-group-count": "Groups of the consumer protocol in a state"},
    has_attributes=True,
    labels=("state",),
)
SHARE_GROUP_COUNT: Final = MetricGroup(
    SERVER_DOMAIN,
    "group-coordinator-metrics",
    {"share-group-count": "Groups of the share protocol in a state"},
    has_attributes=True,
    labels=("state",),
)
SHARE_GROUP_REBALANCES: Final = MetricGroup(
    SERVER_DOMAIN,
    "group-coordinator-metrics",
    {
        "share-group-rebalance-rate": "New epochs of share groups upon heartbeats, by second",
        "share-group-rebalance-count": "New epochs of share groups upon heartbeats",
    },
    has_attributes=True,
)
_LOAD_TIMES: Final = MappingProxyType(
    {
        "partition-load-time-max": "Longest load of a coordinator, in ms, of the last minute",
        "partition-load-time-avg": "Mean time to load a coordinator, in ms, of the last minute",
    }
)
GROUP_LOADS: Final = MetricGroup(
    SERVER_DOMAIN, "group-coordinator-metrics", _LOAD_TIMES, has_attributes=True
)
TRANSACTION_LOADS: Final = MetricGroup(
    SERVER_DOMAIN, "transaction-coordinator-metrics", _LOAD_TIMES, has_attributes=True
)
SHARE_LOADS: Final = MetricGroup(
    SERVER_DOMAIN, "share-coordinator-metrics", _LOAD_TIMES, has_attributes=True
)
TRANSACTION_MARKERS: Final = MetricGroup(
    "kafka.coordinator.transaction",
    "TransactionMarkerChannelManager",
    {
        "UnknownDestinationQueueSize": "Transactions that end, and wait for partitions to be led",
        "LogAppendRetryQueueSize": "Transactions whose last record has to be written again",
    },
)
VERIFICATION_TIMES: Final = MetricGroup(
    SERVER_DOMAIN,
    "AddPartitionsToTxnManager",
    {"VerificationTimeMs": "How long a transaction's coordinator takes to answer its leader"},
    kind=Kind.HISTOGRAM,
)
VERIFICATION_FAILURES: Final = MetricGroup(
    SERVER_DOMAIN,
    "AddPartitionsToTxnManager",
    {"VerificationFailureRate": "Partitions that a transaction's coordinator has refused"},
    kind=Kind.METER,
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
    *share_catalogue.GROUPS,
    LOG,
    LOG_MANAGER,
    LOG_DIRECTORIES,
    GROUP_METADATA,
    GROUP_COUNT,
    CONSUMER_GROUP_COUNT,
    SHARE_GROUP_COUNT,
    SHARE_GROUP_REBALANCES,
    GROUP_LOADS,
    TRANSACTION_LOADS,
    SHARE_LOADS,
    TRANSACTION_MARKERS,
    VERIFICATION_TIMES,
    VERIFICATION_FAILURES,
)
CONTROLLER_DOMAIN: Final = "kafka.controller"

KAFKA_CONTROLLER: Final = MetricGroup(
    CONTROLLER_DOMAIN,
    "KafkaController",
    {
        "ActiveControllerCount": "1 on the active controller, 0 on the others",
        "ActiveBrokerCount": "Registered brokers that are not fenced",
        "FencedBrokerCount": "Registered brokers that are fenced",
        "ControlledShutdownBrokerCount": "Registered brokers in controlled shutdown",
        "GlobalTopicCount": "Topics of the cluster",
        "GlobalPartitionCount": "Partitions of the cluster",
        "OfflinePartitionsCount": "Partitions without a leader",
        "PreferredReplicaImbalanceCount": "Partitions that their preferred replica does not lead",
        "IgnoredStaticVoters": "1 if controller.quorum.voters is set but others are in force",
        "MetadataErrorCount": "Times that this controller failed while it wrote or read metadata",
        "LastAppliedRecordOffset": "Offset of the last record that this controller acts on",
        "LastAppliedRecordTimestamp": "When that record was written, in ms since 1970",
        "LastAppliedRecordLagMs": "How long ago that was",
        "LastCommittedRecordOffset": "Offset of the last record known to be committed",
        "EventQueueOperationsStartedCount": "Requests and tasks that this controller has begun",
        "EventQueueOperationsTimedOutCount": "Requests that were too late when their turn came",
        "NewActiveControllersCount": "Times that this node learned of a new leader",
    },
)
KAFKA_CONTROLLER_BROKERS: Final = MetricGroup(
    CONTROLLER_DOMAIN,
    "KafkaController",
    {
        "BrokerRegistrationState": "10 fenced, 20 in controlled shutdown, 30 active",
        "TimeSinceLastHeartbeatReceivedMs": (
            "Since the broker's last heartbeat, the session timeout at most; active controller only"
        ),
    },
    labels=("broker",),
)
CONTROLLER_EVENT_TIMES: Final = MetricGroup(
    CONTROLLER_DOMAIN,
    "ControllerEventManager",
    {
        "EventQueueTimeMs": "How long a request or task waits for those before it",
        "EventQueueProcessingTimeMs": "How long the controller works on a request or task",
    },
    kind=Kind.HISTOGRAM,
)
CONTROLLER_EVENTS: Final = MetricGroup(
    CONTROLLER_DOMAIN,
    "ControllerEventManager",
    {"AvgIdleRatio": "Share of time in which the controller is idle"},
)
CONTROLLER_STATS: Final = MetricGroup(
    CONTROLLER_DOMAIN,
    "ControllerStats",
    {
        "UncleanLeaderElectionsPerSec": "Leaders elected that may lack committed records",
        "ElectionFromEligibleLeaderReplicasPerSec": "Leaders elected from outside the ISR, safely",
    },
    kind=Kind.METER,
)
METADATA_LOADER: Final = MetricGroup(
    SERVER_DOMAIN,
    "MetadataLoader",
    {
        "CurrentMetadataVersion": "Level of the finalized metadata.version",
        "CurrentControllerId": "Id of the leader of the quorum, -1 if none is known",
        "HandleLoadSnapshotCount": "Snapshots loaded since the start",
        "AvgIdleRatio": "Share of time in which no metadata is being applied",
    },
)
FINALIZED_LEVELS: Final = MetricGroup(
    SERVER_DOMAIN,
    "MetadataLoader",
    {"FinalizedLevel": "Finalized level of a feature"},
    labels=("featureName",),
)
SNAPSHOT_EMITTER: Final = MetricGroup(
    SERVER_DOMAIN,
    "SnapshotEmitter",
    {
        "LatestSnapshotGeneratedBytes": "Size of the latest snapshot of this process, 0 for none",
        "LatestSnapshotGeneratedAgeMs": "Time since the latest snapshot, or since the start",
    },
)
METADATA_BATCHES: Final = MetricGroup(
    SERVER_DOMAIN,
    "BrokerMetadataListener",
    {
        "MetadataBatchProcessingTimeUs": "How long it takes to apply a batch of the log",
        "MetadataBatchSizes": "Records in a batch of the log",
    },
    kind=Kind.HISTOGRAM,
)
BROKER_METADATA: Final = MetricGroup(
    SERVER_DOMAIN,
    "broker-metadata-metrics",
    {
        "last-applied-record-offset": "Offset of the last record that this broker acts on",
        "last-applied-record-timestamp": "When that record was written, in ms since 1970",
        "last-applied-record-lag-ms": "How long ago that was",
        "metadata-apply-error-count": "Times that this broker could not use metadata",
        "ignored-static-voters": "1 if controller.quorum.voters is set but others are in force",
    },
    has_attributes=True,
)
SUPPORTED_LEVELS: Final = MetricGroup(
    SERVER_DOMAIN,
    "node-metrics",
    {
        "maximum-supported-level": "Highest level of a feature that this node supports",
        "minimum-supported-level": "Lowest level of a feature that this node supports",
    },
    has_attributes=True,
    labels=("feature-name",),
)
KAFKA_SERVER: Final = MetricGroup(
    SERVER_DOMAIN,
    "KafkaServer",
    {"BrokerState": "1 starting, 2 recovery, 3 running, 6 pending controlled shutdown, 7 stopping"},
)
KAFKA_SERVER_TEXTS: Final = MetricGroup(
    SERVER_DOMAIN, "KafkaServer", {"ClusterId": "Id of the cluster"}, kind=Kind.TEXT
)
CONTROLLER_SERVER_TEXTS: Final = MetricGroup(
    SERVER_DOMAIN, "ControllerServer", {"ClusterId": "Id of the cluster"}, kind=Kind.TEXT
)
RAFT: Final = MetricGroup(
    SERVER_DOMAIN,
    "raft-metrics",
    {
        "current-leader": "Id of the leader of the quorum, -1 if none is known",
        "current-vote": "Id that this replica voted for in this epoch, -1 for none",
        "current-epoch": "Epoch of the quorum",
        "high-watermark": "Offset below which everything is committed, -1 if not known",
        "log-end-offset": "Offset that the next record of this replica's log gets",
        "log-end-epoch": "Epoch of the last record of this replica's log",
        "number-unknown-voter-connections": "Voters whose address is not known",
        "number-of-voters": "Voters of the quorum",
        "number-of-observers": "Observers that fetch from this leader",
        "uncommitted-voter-change": "1 while this leader has a change of voters uncommitted",
        "commit-latency-avg": "Mean time to commit, by record, in ms, of the last minute",
        "commit-latency-max": "Longest time to commit, by record, in ms, of the last minute",
        "election-latency-avg": "Mean time to find a leader, in ms, of the last minute",
        "election-latency-max": "Longest time to find a leader, in ms, of the last minute",
        "fetch-records-rate": "Records fetched from the leader, by second",
        "append-records-rate": "Records appended as the leader, by second",
    },
    has_attributes=True,
)
KIP_853: Final = MetricGroup(
    SERVER_DOMAIN,
    "raft-metrics",
    {
        "number-of-offline-voters": "Voters that have not fetched within the fetch timeout",
        "duplicate-voter-ids": "Ids of voters that another replica shows as well",
        "pending-add-voter": "1 while this leader makes a replica a voter",
        "pending-remove-voter": "1 while this leader takes a voter out of the voters",
        "is-observer": "1 on a controller that is not one of the voters",
    },
    has_attributes=True,
)
"""Metrics that KIP-853 names and Kafka does not have; all but the last on a leader only."""
RAFT_TEXTS: Final = MetricGroup(
    SERVER_DOMAIN,
    "raft-metrics",
    {
        "current-state": "Role of this replica",
        "current-vote-directory-id": "Directory id of the replica that this one voted for",
    },
    kind=Kind.TEXT,
    has_attributes=True,
)
CONNECTIONS: Final = MetricGroup(
    SERVER_DOMAIN,
    "socket-server-metrics",
    {
        "connection-count": "Open connections of a listener",
        "successful-authentication-total": "Clients that TLS or SASL has let in",
        "successful-authentication-no-reauth-total": (
            "Those that cannot authenticate again: by TLS, or by SASL of before Kafka 2.2"
        ),
        "failed-authentication-total": "Clients that TLS or SASL has not let in",
        "successful-reauthentication-total": "Further authentications of clients by SASL",
        "failed-reauthentication-total": "Those that failed, so that the connection was closed",
        "reauthentication-latency-avg": "Mean time of those, in ms, of the last minute",
        "reauthentication-latency-max": "Longest time of those, in ms, of the last minute",
        "expired-connections-killed-count": "Connections closed after the end of their session",
    },
    has_attributes=True,
    labels=("listener", "networkProcessor"),
)
OWN: Final = MetricGroup(
    OWN_DOMAIN,
    "",
    {
        "is_alive": "1 if /healthz reports a live node",
        "is_ready": "1 if /readyz reports a ready node",
    },
)
OWN_REASSIGNMENT: Final = MetricGroup(
    OWN_DOMAIN,
    "",
    {
        "quorum_reassignment_adding_voters": (
            "Target voters that are no voters yet; this and the next two are shown by the active "
            "controller, and by each of kvorum's while a leader of real Kafka is led to the targets"
        ),
        "quorum_reassignment_removing_voters": "Voters that are not among the target voters",
        "quorum_reassignment_blocked_reason": (
            "0 while there is progress, or nothing to do; otherwise what the reassignment waits "
            "for: 1 voters that can change, 2 the commit of a change of voters, 3 a target that is "
            "unknown, 4 or ambiguous, 5 or behind, 6 a majority, 7 the leader, which refuses, "
            "8 targets that can be read"
        ),
    },
)
"""Of a reassignment of the quorum (KIP-642); on the active controller, or on all in its place."""
OWN_COUNTS: Final = MetricGroup(
    OWN_DOMAIN,
    "",
    {
        "event_loop_stalls": "Times that the process stood still for 100 ms or longer",
        "event_loop_stalled_ms": "Total time of these stalls",
    },
    kind=Kind.METER,
)
GROUPS: Final = (
    KAFKA_CONTROLLER,
    KAFKA_CONTROLLER_BROKERS,
    CONTROLLER_EVENT_TIMES,
    CONTROLLER_EVENTS,
    CONTROLLER_STATS,
    METADATA_LOADER,
    FINALIZED_LEVELS,
    SNAPSHOT_EMITTER,
    METADATA_BATCHES,
    BROKER_METADATA,
    SUPPORTED_LEVELS,
    KAFKA_SERVER,
    KAFKA_SERVER_TEXTS,
    CONTROLLER_SERVER_TEXTS,
    RAFT,
    RAFT_TEXTS,
    KIP_853,
    CONNECTIONS,
    *BROKER_GROUPS,
    OWN,
    OWN_REASSIGNMENT,
    OWN_COUNTS,
)


def all_metrics() -> tuple[Metric, ...]:
    """Return every metric there is."""
    return tuple(metric for group in GROUPS for metric in group.metrics)
