"""The metrics of the records of share groups: on their leaders, and where their state is kept."""

from typing import Final

from kvorum.node.metrics.names import SERVER_DOMAIN, Kind, MetricGroup

_OF_SHARE_PARTITION: Final = ("group", "topic", "partition")

SESSIONS: Final = MetricGroup(
    SERVER_DOMAIN,
    "ShareSessionCache",
    {
        "ShareSessionsCount": "Share sessions of members",
        "SharePartitionsCount": "Partitions of these sessions",
    },
)
SESSION_RATES: Final = MetricGroup(
    SERVER_DOMAIN,
    "ShareSessionCache",
    {"ShareSessionEvictionsPerSec": "Share sessions that have ended with their connections"},
    kind=Kind.METER,
)
EXPIRATIONS: Final = MetricGroup(
    SERVER_DOMAIN,
    "DelayedShareFetchMetrics",
    {"ExpiresPerSec": "Fetches of members of share groups whose time was up"},
    kind=Kind.METER,
)
ACKNOWLEDGEMENTS: Final = MetricGroup(
    SERVER_DOMAIN,
    "ShareGroupMetrics",
    {"RecordAcknowledgementsPerSec": "Records that members of share groups have acknowledged"},
    kind=Kind.METER,
    labels=("ackType",),
)
PARTITION_LOADS: Final = MetricGroup(
    SERVER_DOMAIN,
    "ShareGroupMetrics",
    {"PartitionLoadTimeMs": "How long it takes a leader to get the state of a share partition"},
    kind=Kind.HISTOGRAM,
)
GROUP_FETCHES: Final = MetricGroup(
    SERVER_DOMAIN,
    "ShareGroupMetrics",
    {
        "RequestTopicPartitionsFetchRatio": (
            "Partitions that a fetch reads, in percent of those that it asks for"
        ),
        "TopicPartitionsAcquireTimeMs": "How long fetches wait for partitions that they may read",
    },
    kind=Kind.HISTOGRAM,
    labels=("group",),
)
DEAD_LETTERS: Final = MetricGroup(
    SERVER_DOMAIN,
    "ShareGroupMetrics",
    {
        "DeadLetterQueueRecordCount": "Records of a share group that have come to its queue",
        "DeadLetterQueueTotalProduceRequestsPerSec": (
            "Batches of such records that were sent to leaders of the queue"
        ),
        "DeadLetterQueueFailedProduceRequestsPerSec": "Those of them that were given up",
    },
    kind=Kind.METER,
    labels=("group",),
)
PARTITIONS: Final = MetricGroup(
    SERVER_DOMAIN,
    "SharePartitionMetrics",
    {
        "InFlightMessageCount": "Records in flight of a share partition",
        "InFlightBatchCount": "Batches of these records",
    },
    labels=_OF_SHARE_PARTITION,
)
PARTITION_RATES: Final = MetricGroup(
    SERVER_DOMAIN,
    "SharePartitionMetrics",
    {"AcquisitionLockTimeoutPerSec": "Records whose acquisition locks have expired"},
    kind=Kind.METER,
    labels=_OF_SHARE_PARTITION,
)
PARTITION_VALUES: Final = MetricGroup(
    SERVER_DOMAIN,
    "SharePartitionMetrics",
    {
        "InFlightBatchMessageCount": "Records of a batch that is put into flight",
        "FetchLockTimeMs": "How long a fetch keeps others from the share partition",
        "FetchLockRatio": "That time, in percent of the time since the fetch before",
    },
    kind=Kind.HISTOGRAM,
    labels=_OF_SHARE_PARTITION,
)
WRITES: Final = MetricGroup(
    SERVER_DOMAIN,
    "share-coordinator-metrics",
    {
        "write-rate": "Writes of the state of share partitions, by second",
        "write-total": "Writes of the state of share partitions",
        "write-latency-avg": "Mean time of a request to write it, in ms, of the last minute",
        "write-latency-max": "Longest time of a request to write it, in ms, of the last minute",
    },
    has_attributes=True,
)
PRUNES: Final = MetricGroup(
    SERVER_DOMAIN,
    "share-coordinator-metrics",
    {"last-pruned-offset": "Offset up to which records of the state were deleted last"},
    has_attributes=True,
    labels=("topic", "partition"),
)
GROUPS: Final = (
    SESSIONS,
    SESSION_RATES,
    EXPIRATIONS,
    ACKNOWLEDGEMENTS,
    PARTITION_LOADS,
    GROUP_FETCHES,
    DEAD_LETTERS,
    PARTITIONS,
    PARTITION_RATES,
    PARTITION_VALUES,
    WRITES,
    PRUNES,
)
