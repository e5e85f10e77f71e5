"""The settings of a node in groups, each a value with units in its names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    QuorumVoterEntry,
    parse_bootstrap_server,
    parse_quorum_voters,
    parse_value,
)
from kvorum.metadata.config_definitions.java_text import parse_java_integer
from kvorum.node.config.errors import ConfigError, config_errors
from kvorum.node.config.listener import parse_map
from kvorum.node.config.listeners import Listeners
from kvorum.node.config.values import BrokerValues

CONNECTION_RATE: Final = "max.connection.creation.rate"


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """``controller.quorum.*``: the voters, and the timeouts of the quorum."""

    voters: tuple[QuorumVoterEntry, ...]
    bootstrap_servers: tuple[Address, ...]
    election_timeout_ms: int
    election_backoff_ms_max: int
    fetch_timeout_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    auto_join: bool
    fetch_bytes_max: int
    fetch_snapshot_bytes_max: int

    @property
    def is_static(self) -> bool:
        """Whether the voters are fixed by configuration (kraft.version 0)."""
        return bool(self.voters)


@dataclass(frozen=True, slots=True)
class MetadataLogSettings:
    """``metadata.*``: the directory of the log, its segments, snapshots and retention."""

    directory: str
    segment_bytes_max: int
    segment_ms_max: int
    snapshot_after_bytes: int
    snapshot_after_ms: int
    retention_bytes: int
    retention_ms: int
    idle_interval_ms: int
    delete_delay_ms: int


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The registration, heartbeats and sessions of brokers."""

    rack: str | None
    heartbeat_interval_ms: int
    session_timeout_ms: int
    registration_timeout_ms: int
    log_dir_failure_timeout_ms: int
    is_controlled_shutdown_enabled: bool
    cordoned_log_directories: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """The time for which an idle cleaner rests, and the memory for keys."""

    backoff_ms: int
    dedupe_buffer_bytes: int
    load_factor: float


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The logs of topics: checkpoints, deletion, producers, the size of fetches, their sessions."""

    high_watermark_checkpoint_ms: int
    recovery_point_checkpoint_ms: int
    retention_check_ms: int
    delete_delay_ms: int
    producer_id_expiration_ms: int
    recovery_thread_count: int
    fetch_bytes_max: int
    fetch_session_slots: int
    cleaner: CleanerSettings | None
    """Without compaction it is None."""


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """``replica.*``: how followers fetch, when they no longer count as in sync, who reads there.

    `selector_class` chooses the replica that a consumer reads from; None is the leader.
    """

    fetcher_count: int
    fetch_wait_ms_max: int
    fetch_bytes_min: int
    fetch_bytes_max: int
    fetch_response_bytes_max: int
    fetch_backoff_ms: int
    socket_timeout_ms: int
    lag_ms_max: int
    selector_class: str | None
    quota_sample_count: int
    quota_window_seconds: int
    alter_log_dirs_quota_sample_count: int
    alter_log_dirs_quota_window_seconds: int


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The defaults of topics, and which operations on them are allowed."""

    partitions_default: int
    replication_factor_default: int
    is_auto_create_enabled: bool
    is_delete_enabled: bool
    unclean_election_interval_ms: int
    is_leader_rebalance_enabled: bool
    leader_imbalance_check_interval_seconds: int


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The pause between tries to add a partition to a transaction, and the time for all tries.

    Kafka's AddPartitionsToTxnConfig, of leaders that ask coordinators of transactions.
    """

    add_partitions_retry_backoff_ms: int
    add_partitions_retry_backoff_ms_max: int


@dataclass(frozen=True, slots=True)
class MutationQuotaSettings:
    """The window in which a client accumulates unused quota to create and delete partitions."""

    window_count: int
    window_seconds: int


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """The class names of the operator's policies, None for a policy that is not configured."""

    create_topic: str | None
    alter_config: str | None


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The limits of connections and requests; rates are connections per second."""

    request_bytes_max: int
    request_partitions_max: int
    request_timeout_ms: int
    connections_idle_ms_max: int
    connections_max: int
    connections_per_ip_max: int
    connections_per_ip_overrides: Mapping[str, int]
    """Other limits of single addresses, or of hosts by name."""
    connection_rate_max: int
    connection_rates_max: Mapping[str, int]
    quota_window_count: int
    quota_window_seconds: int
    listen_backlog: int


def quorum_settings(values: BrokerValues) -> QuorumSettings:
    """Read ``controller.quorum.*``."""
    with config_errors():
        voters = parse_quorum_voters(
            values.words("controller.quorum.voters"), must_be_routable=False
        )
        servers = tuple(
            map(parse_bootstrap_server, values.words("controller.quorum.bootstrap.servers"))
        )
    return QuorumSettings(
        voters=voters,
        bootstrap_servers=servers,
        election_timeout_ms=values.integer("controller.quorum.election.timeout.ms"),
        election_backoff_ms_max=values.integer("controller.quorum.election.backoff.max.ms"),
        fetch_timeout_ms=values.integer("controller.quorum.fetch.timeout.ms"),
        request_timeout_ms=values.integer("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=values.integer("controller.quorum.retry.backoff.ms"),
        auto_join=values.boolean("controller.quorum.auto.join.enable"),
        fetch_bytes_max=values.integer("controller.quorum.fetch.max.bytes"),
        fetch_snapshot_bytes_max=values.integer("controller.quorum.fetch.snapshot.max.bytes"),
    )


def metadata_log_settings(values: BrokerValues, *, directory: str) -> MetadataLogSettings:
    """Read ``metadata.*``, including the internal keys that Kafka's own tests use."""
    small_segments = values.optional_integer("internal.metadata.log.segment.bytes")
    return MetadataLogSettings(
        directory=directory,
        segment_bytes_max=small_segments or values.integer("metadata.log.segment.bytes"),
        segment_ms_max=values.integer("metadata.log.segment.ms"),
        snapshot_after_bytes=values.integer("metadata.log.max.record.bytes.between.snapshots"),
        snapshot_after_ms=values.integer("metadata.log.max.snapshot.interval.ms"),
        retention_bytes=values.integer("metadata.max.retention.bytes"),
        retention_ms=values.integer("metadata.max.retention.ms"),
        idle_interval_ms=values.integer("metadata.max.idle.interval.ms"),
        delete_delay_ms=values.integer("internal.metadata.delete.delay.millis"),
    )


def broker_settings(values: BrokerValues) -> BrokerSettings:
    """Read the keys about registration, heartbeats and sessions."""
    return BrokerSettings(
        rack=values.optional_text("broker.rack"),
        heartbeat_interval_ms=values.integer("broker.heartbeat.interval.ms"),
        session_timeout_ms=values.integer("broker.session.timeout.ms"),
        registration_timeout_ms=values.integer("initial.broker.registration.timeout.ms"),
        log_dir_failure_timeout_ms=values.integer("log.dir.failure.timeout.ms"),
        is_controlled_shutdown_enabled=values.boolean("controlled.shutdown.enable"),
        cordoned_log_directories=values.optional_words("cordoned.log.dirs") or (),
    )


def log_settings(values: BrokerValues) -> LogSettings:
    """Read the keys about the logs of topics that are not a topic's own."""
    return LogSettings(
        high_watermark_checkpoint_ms=values.integer(
            "replica.high.watermark.checkpoint.interval.ms"
        ),
        recovery_point_checkpoint_ms=values.integer("log.flush.offset.checkpoint.interval.ms"),
        retention_check_ms=values.integer("log.retention.check.interval.ms"),
        delete_delay_ms=values.integer("log.segment.delete.delay.ms"),
        producer_id_expiration_ms=values.integer("producer.id.expiration.ms"),
        recovery_thread_count=values.integer("num.recovery.threads.per.data.dir"),
        fetch_bytes_max=values.integer("fetch.max.bytes"),
        fetch_session_slots=values.integer("max.incremental.fetch.session.cache.slots"),
        cleaner=_cleaner_settings(values) if values.boolean("log.cleaner.enable") else None,
    )


def _cleaner_settings(values: BrokerValues) -> CleanerSettings:
    return CleanerSettings(
        backoff_ms=values.integer("log.cleaner.backoff.ms"),
        dedupe_buffer_bytes=values.integer("log.cleaner.dedupe.buffer.size"),
        load_factor=values.number("log.cleaner.io.buffer.load.factor"),
    )


def replication_settings(values: BrokerValues) -> ReplicationSettings:
    """Read the keys about followers."""
    return ReplicationSettings(
        fetcher_count=values.integer("num.replica.fetchers"),
        fetch_wait_ms_max=values.integer("replica.fetch.wait.max.ms"),
        fetch_bytes_min=values.integer("replica.fetch.min.bytes"),
        fetch_bytes_max=values.integer("replica.fetch.max.bytes"),
        fetch_response_bytes_max=values.integer("replica.fetch.response.max.bytes"),
        fetch_backoff_ms=values.integer("replica.fetch.backoff.ms"),
        selector_class=values.optional_text("replica.selector.class"),
        quota_sample_count=values.integer("replication.quota.window.num"),
        quota_window_seconds=values.integer("replication.quota.window.size.seconds"),
        alter_log_dirs_quota_sample_count=values.integer(
            "alter.log.dirs.replication.quota.window.num"
        ),
        alter_log_dirs_quota_window_seconds=values.integer(
            "alter.log.dirs.replication.quota.window.size.seconds"
        ),
        socket_timeout_ms=values.integer("replica.socket.timeout.ms"),
        lag_ms_max=values.integer("replica.lag.time.max.ms"),
    )


def topic_settings(values: BrokerValues) -> TopicSettings:
    """Read the defaults and permissions of topics."""
    return TopicSettings(
        partitions_default=values.integer("num.partitions"),
        replication_factor_default=values.integer("default.replication.factor"),
        is_auto_create_enabled=values.boolean("auto.create.topics.enable"),
        is_delete_enabled=values.boolean("delete.topic.enable"),
        unclean_election_interval_ms=values.integer("unclean.leader.election.interval.ms"),
        is_leader_rebalance_enabled=values.boolean("auto.leader.rebalance.enable"),
        leader_imbalance_check_interval_seconds=values.integer(
            "leader.imbalance.check.interval.seconds"
        ),
    )


def transaction_settings(values: BrokerValues) -> TransactionSettings:
    """Read the keys of adding partitions to transactions."""
    return TransactionSettings(
        add_partitions_retry_backoff_ms=values.integer("add.partitions.to.txn.retry.backoff.ms"),
        add_partitions_retry_backoff_ms_max=values.integer(
            "add.partitions.to.txn.retry.backoff.max.ms"
        ),
    )


def mutation_quota_settings(values: BrokerValues) -> MutationQuotaSettings:
    """Read ``controller.quota.window.*``."""
    return MutationQuotaSettings(
        window_count=values.integer("controller.quota.window.num"),
        window_seconds=values.integer("controller.quota.window.size.seconds"),
    )


def policy_settings(values: BrokerValues) -> PolicySettings:
    """Read the keys that name policies."""
    return PolicySettings(
        create_topic=values.optional_text("create.topic.policy.class.name"),
        alter_config=values.optional_text("alter.config.policy.class.name"),
    )


def _per_ip_overrides(values: BrokerValues) -> Mapping[str, int]:
    key = "max.connections.per.ip.overrides"
    overrides: dict[str, int] = {}
    for host, text in parse_map(key, values.text(key)).items():
        try:
            overrides[host] = parse_java_integer(text, bits=32)
        except ValueError:
            raise ConfigError(f'For input string: "{text}"') from None
    return MappingProxyType(overrides)


def network_settings(values: BrokerValues, listeners: Listeners) -> NetworkSettings:
    """Read the limits of connections and requests."""
    return NetworkSettings(
        request_bytes_max=values.integer("socket.request.max.bytes"),
        request_partitions_max=values.integer("max.request.partition.size.limit"),
        request_timeout_ms=values.integer("request.timeout.ms"),
        connections_idle_ms_max=values.integer("connections.max.idle.ms"),
        connections_max=values.integer("max.connections"),
        connections_per_ip_max=values.integer("max.connections.per.ip"),
        connections_per_ip_overrides=_per_ip_overrides(values),
        connection_rate_max=values.integer(CONNECTION_RATE),
        connection_rates_max=_rates_of_listeners(values, listeners),
        quota_window_count=values.integer("quota.window.num"),
        quota_window_seconds=values.integer("quota.window.size.seconds"),
        listen_backlog=values.integer("socket.listen.backlog.size"),
    )


def _rates_of_listeners(values: BrokerValues, listeners: Listeners) -> Mapping[str, int]:
    """Return the connection rate of each listener: that of its own key, else that of the node."""
    rates: dict[str, int] = {}
    for listener in listeners.bound:
        own = f"listener.name.{listener.name.lower()}.{CONNECTION_RATE}"
        if own in values.texts:
            with config_errors():
                rate = parse_value(BROKER_CONFIGS[CONNECTION_RATE], values.texts[own])
            assert isinstance(rate, int)
            rates[listener.name] = rate
        else:
            rates[listener.name] = values.integer(CONNECTION_RATE)
    return MappingProxyType(rates)
