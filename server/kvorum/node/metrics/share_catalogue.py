"""The metrics of the records of share groups: on their leaders, and where their state is kept."""

from typing import Final

from kvorum.node.metrics.names import SERVER_DOMAIN, Kind, MetricGroup

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
GROUPS: Final = (SESSIONS, SESSION_RATES, WRITES)
