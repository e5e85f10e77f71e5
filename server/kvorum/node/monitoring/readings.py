"""The current values of the metrics of every node: its log, its metadata, its requests."""

from collections.abc import Iterator, Mapping
from typing import Final

from kvorum.metadata.features import KRAFT_VERSION_FEATURE, VersionRange
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.metrics import broker_catalogue, catalogue
from kvorum.node.metrics.names import Reading
from kvorum.node.raft import RaftNode
from kvorum.node.raft.measures import RaftMeasures
from kvorum.node.serving.request_metrics import RequestChannelMetrics, RequestMetrics
from kvorum.raft.metrics import RaftMetrics
from kvorum.wire.error_codes import ErrorCode

NO_CONTROLLER = -1
ONLY_PROCESSOR: Final = 0
"""Kafka counts the connections of each of its network threads; here there is one."""
_RAFT_TEXTS = frozenset(metric.name for metric in catalogue.RAFT_TEXTS.metrics)
_RAFT_NUMBERS = frozenset(metric.name for metric in catalogue.RAFT.metrics)
_OF_KIP_853 = frozenset(metric.name for metric in catalogue.KIP_853.metrics)
_ERROR_NAMES: Final = {int(code): code.name for code in ErrorCode}


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


def connection_readings(counts: Mapping[str, int]) -> Iterator[Reading]:
    """Yield the number of open connections by listener."""
    for listener, count in counts.items():
        yield catalogue.CONNECTIONS.reading("connection-count", count, listener, ONLY_PROCESSOR)


def request_readings(metrics: RequestChannelMetrics) -> Iterator[Reading]:
    """Yield the values of each kind of requests that there have been."""
    for name, requests in metrics.by_name.items():
        yield from _readings_of_kind(name, requests)


def _readings_of_kind(name: str, requests: RequestMetrics) -> Iterator[Reading]:
    for version, count in requests.by_version.items():
        yield broker_catalogue.REQUESTS.reading("RequestsPerSec", count, name, version)
    for code, count in requests.errors.items():
        error = _ERROR_NAMES.get(code, str(code))
        yield broker_catalogue.REQUEST_ERRORS.reading("ErrorsPerSec", count, name, error)
    group, times = broker_catalogue.REQUEST_TIMES, requests.times
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
