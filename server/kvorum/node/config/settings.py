"""The settings of a node in groups, each a value with units in its names and the key it has."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Final

from kvorum.broker.quota.rate import MetricConfig
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions import (
    CONNECTIONS_OF_ADDRESSES,
    CONNECTIONS_PER_ADDRESS,
    CORDONED_LOG_DIRS,
    QuorumVoterEntry,
    connections_of_addresses,
    parse_bootstrap_server,
    parse_quorum_voters,
    read_settings,
)
from kvorum.node.config.errors import config_errors, require
from kvorum.node.config.listeners import Listeners
from kvorum.node.config.values import NodeValues
from kvorum.share_coordinator.settings import ShareCoordinatorSettings
from kvorum.storage.log.log_config import LogConfig
from kvorum.transactions.settings import TransactionCoordinatorSettings
from kvorum.wire.records import Compression

CONNECTION_RATE: Final = "max.connection.creation.rate"
CONNECTIONS_MAX: Final = "max.connections"
_MS_PER_S: Final = 1000


def _voters(entries: tuple[str, ...]) -> tuple[QuorumVoterEntry, ...]:
    return parse_quorum_voters(entries, must_be_routable=False)


def _addresses(entries: tuple[str, ...]) -> tuple[Address, ...]:
    return tuple(map(parse_bootstrap_server, entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """The voters of the metadata quorum, and the controllers to ask first."""

    voters: Annotated[tuple[QuorumVoterEntry, ...], "controller.quorum.voters", _voters]
    bootstrap_servers: Annotated[
        tuple[Address, ...], "controller.quorum.bootstrap.servers", _addresses
    ]

    @property
    def is_static(self) -> bool:
        """Whether the voters are fixed by configuration (kraft.version 0)."""
        return bool(self.voters)


def _metadata_directory(
    own: str | None, log_directories: tuple[str, ...] | None, log_directory: tuple[str, ...]
) -> str:
    return own or (log_directories or log_directory)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogSettings:
    """The directory of the metadata log, its snapshots, its segments and their retention."""

    directory: Annotated[str, "metadata.log.dir", "log.dirs", "log.dir", _metadata_directory]
    snapshot_after_bytes: Annotated[int, "metadata.log.max.record.bytes.between.snapshots"]
    snapshot_after_ms: Annotated[int, "metadata.log.max.snapshot.interval.ms"]
    idle_interval_ms: Annotated[int, "metadata.max.idle.interval.ms"]
    log: LogConfig


def _or_nothing(entries: tuple[str, ...] | None) -> tuple[str, ...]:
    return entries or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """The registration, heartbeats and sessions of brokers."""

    rack: Annotated[str | None, "broker.rack"]
    heartbeat_interval_ms: Annotated[int, "broker.heartbeat.interval.ms"]
    session_timeout_ms: Annotated[int, "broker.session.timeout.ms"]
    registration_timeout_ms: Annotated[int, "initial.broker.registration.timeout.ms"]
    log_dir_failure_timeout_ms: Annotated[int, "log.dir.failure.timeout.ms"]
    is_controlled_shutdown_enabled: Annotated[bool, "controlled.shutdown.enable"]
    cordoned_log_directories: Annotated[tuple[str, ...], CORDONED_LOG_DIRS, _or_nothing]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """The switch of compaction, the time for which an idle cleaner rests, the memory for keys."""

    is_enabled: Annotated[bool, "log.cleaner.enable"] = True
    backoff_ms: Annotated[int, "log.cleaner.backoff.ms"]
    dedupe_buffer_bytes: Annotated[int, "log.cleaner.dedupe.buffer.size"]
    load_factor: Annotated[float, "log.cleaner.io.buffer.load.factor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The work on the logs of topics: checkpoints, retention, idle producers, compaction."""

    high_watermark_checkpoint_ms: Annotated[int, "replica.high.watermark.checkpoint.interval.ms"]
    recovery_point_checkpoint_ms: Annotated[int, "log.flush.offset.checkpoint.interval.ms"]
    retention_check_ms: Annotated[int, "log.retention.check.interval.ms"]
    producer_expiration_check_ms: Annotated[int, "producer.id.expiration.check.interval.ms"]
    cleaner: CleanerSettings


def _windows(count: int, seconds: int) -> MetricConfig:
    return MetricConfig(count, seconds * _MS_PER_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSettings:
    """``replica.*``: who fetches, when followers no longer count as in sync, who reads there.

    `selector_class` chooses the replica that a consumer reads from; None is the leader.
    """

    fetcher_count: Annotated[int, "num.replica.fetchers"]
    socket_timeout_ms: Annotated[int, "replica.socket.timeout.ms"]
    lag_ms_max: Annotated[int, "replica.lag.time.max.ms"]
    selector_class: Annotated[str | None, "replica.selector.class"]
    quota_windows: Annotated[
        MetricConfig,
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        _windows,
    ]
    alter_log_dirs_quota_windows: Annotated[
        MetricConfig,
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
        _windows,
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """The defaults of new topics, and how often their leaders are looked at."""

    partitions_default: Annotated[int, "num.partitions"]
    replication_factor_default: Annotated[int, "default.replication.factor"]
    is_auto_create_enabled: Annotated[bool, "auto.create.topics.enable"]
    unclean_election_interval_ms: Annotated[int, "unclean.leader.election.interval.ms"]
    is_leader_rebalance_enabled: Annotated[bool, "auto.leader.rebalance.enable"]
    leader_imbalance_check_interval_seconds: Annotated[
        int, "leader.imbalance.check.interval.seconds"
    ]


def _compression(codec: int) -> Compression:
    require(codec in list(Compression), f"Unknown compression type id: {codec}")
    return Compression(codec)


@dataclass(frozen=True, slots=True)
class OffsetsTopicSettings:
    """The settings of ``__consumer_offsets`` and of its batches."""

    partition_count: Annotated[int, "offsets.topic.num.partitions"]
    replication_factor: Annotated[int, "offsets.topic.replication.factor"]
    segment_bytes: Annotated[int, "offsets.topic.segment.bytes"]
    compression: Annotated[Compression, "offsets.topic.compression.codec", _compression]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Limits of members' sessions, the times of an append, and what a shard has to know."""

    coordinator: GroupCoordinatorSettings
    session_timeout_ms_min: Annotated[int, "group.min.session.timeout.ms"]
    session_timeout_ms_max: Annotated[int, "group.max.session.timeout.ms"]
    commit_timeout_ms: Annotated[int, "offsets.commit.timeout.ms"]
    append_linger_ms: Annotated[int, "group.coordinator.append.linger.ms"]
    topic: OffsetsTopicSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionTopicSettings:
    """The configuration with which ``__transaction_state`` is created."""

    partition_count: Annotated[int, "transaction.state.log.num.partitions"]
    replication_factor: Annotated[int, "transaction.state.log.replication.factor"]
    min_insync_replicas: Annotated[int, "transaction.state.log.min.isr"]
    segment_bytes: Annotated[int, "transaction.state.log.segment.bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Limits of producers, what a shard has to know, and the tries of a partition's leader.

    The pause between tries to add a partition to a transaction, and the time for all tries, are
    Kafka's AddPartitionsToTxnConfig.
    """

    coordinator: TransactionCoordinatorSettings
    timeout_ms_max: Annotated[int, "transaction.max.timeout.ms"]
    is_two_phase_commit_enabled: Annotated[bool, "transaction.two.phase.commit.enable"]
    topic: TransactionTopicSettings
    add_partitions_retry_backoff_ms: Annotated[int, "add.partitions.to.txn.retry.backoff.ms"]
    add_partitions_retry_backoff_ms_max: Annotated[
        int, "add.partitions.to.txn.retry.backoff.max.ms"
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStateTopicSettings:
    """The configuration with which ``__share_group_state`` is created, and of its batches."""

    partition_count: Annotated[int, "share.coordinator.state.topic.num.partitions"]
    replication_factor: Annotated[int, "share.coordinator.state.topic.replication.factor"]
    min_insync_replicas: Annotated[int, "share.coordinator.state.topic.min.isr"]
    segment_bytes: Annotated[int, "share.coordinator.state.topic.segment.bytes"]
    compression: Annotated[
        Compression, "share.coordinator.state.topic.compression.codec", _compression
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStateSettings:
    """The times of an append of share partitions' state, and what a shard has to know.

    Every `prune_interval_ms` the records that no share partition needs are deleted.
    """

    coordinator: ShareCoordinatorSettings
    write_timeout_ms: Annotated[int, "share.coordinator.write.timeout.ms"]
    append_linger_ms: Annotated[int, "share.coordinator.append.linger.ms"]
    prune_interval_ms: Annotated[int, "share.coordinator.state.topic.prune.interval.ms"]
    topic: ShareGroupStateTopicSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """The class names of the operator's policies, None for a policy that is not configured."""

    create_topic: Annotated[str | None, "create.topic.policy.class.name"]
    alter_config: Annotated[str | None, "alter.config.policy.class.name"]


def _connections_of_addresses(text: str) -> Mapping[str, int]:
    with config_errors():
        return MappingProxyType(connections_of_addresses(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """The limits of connections, requests and fetches; rates are connections per second."""

    request_bytes_max: Annotated[int, "socket.request.max.bytes"]
    request_partitions_max: Annotated[int, "max.request.partition.size.limit"]
    request_timeout_ms: Annotated[int, "request.timeout.ms"]
    fetch_bytes_max: Annotated[int, "fetch.max.bytes"]
    fetch_session_slots: Annotated[int, "max.incremental.fetch.session.cache.slots"]
    connections_idle_ms_max: Annotated[int, "connections.max.idle.ms"]
    failed_authentication_delay_ms: Annotated[int, "connection.failed.authentication.delay.ms"]
    connections_max: Annotated[int, CONNECTIONS_MAX]
    connections_max_of_listeners: Mapping[str, int]
    """The maximum of each listener: that of its own key, else that of the node."""
    connections_per_ip_max: Annotated[int, CONNECTIONS_PER_ADDRESS]
    connections_per_ip_overrides: Annotated[
        Mapping[str, int], CONNECTIONS_OF_ADDRESSES, _connections_of_addresses
    ]
    """Other limits of single addresses, or of hosts by name."""
    connection_rate_max: Annotated[int, CONNECTION_RATE]
    connection_rates_max: Mapping[str, int]
    """The limit of each listener: that of its own key, else that of the node."""
    quota_windows: Annotated[
        MetricConfig, "quota.window.num", "quota.window.size.seconds", _windows
    ]
    listen_backlog: Annotated[int, "socket.listen.backlog.size"]


def network_settings(values: NodeValues, listeners: Listeners) -> NetworkSettings:
    """Read the limits of connections and requests, for some of which a listener has its own."""
    return read_settings(
        NetworkSettings,
        values.value_of,
        connections_max_of_listeners=_of_listeners(values, listeners, CONNECTIONS_MAX),
        connection_rates_max=_of_listeners(values, listeners, CONNECTION_RATE),
    )


def _of_listeners(values: NodeValues, listeners: Listeners, key: str) -> Mapping[str, int]:
    """Return a number that each listener may have of its own."""
    found: dict[str, int] = {}
    for listener in listeners.bound:
        number = values.of_listener(listener.name)(key)
        assert isinstance(number, int)
        found[listener.name] = number
    return MappingProxyType(found)
