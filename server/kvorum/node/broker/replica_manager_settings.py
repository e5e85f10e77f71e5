"""What the replica manager is given: its settings, and what it lives on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaSettings
from kvorum.node.broker.replica_alter_log_dirs_manager import MoveSettings
from kvorum.node.broker.replica_fetcher_manager import ReplicaFetcherSettings
from kvorum.node.clock import Clock
from kvorum.node.config.settings import CleanerSettings
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.outbound.node_to_controller_channel_manager import NodeToControllerChannelManager
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.storage.log_manager import LogManagerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaManagerSettings:
    """The broker's id, its properties, and how often checkpoints are written, in milliseconds.

    `metadata_directory` is the log directory of the metadata log, without which nothing goes on.
    `lag_max_ms` is ``replica.lag.time.max.ms``.
    """

    broker_id: int
    metadata_directory: Path
    texts: Mapping[str, str]
    logs: LogManagerSettings
    fetchers: ReplicaFetcherSettings
    moves: MoveSettings
    quotas: ReplicationQuotaSettings
    lag_max_ms: int = 30_000
    high_watermark_checkpoint_ms: int = 5_000
    recovery_point_checkpoint_ms: int = 60_000
    retention_check_ms: int = 300_000
    cleaner: CleanerSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaEnvironment:
    """What the replicas of a broker live on; `on_failure` ends a broker that cannot continue.

    Changes of ISRs are sent over `alter_partition_channel`, directories of replicas over
    `assignments_channel`, fetches over connections of `outgoing`.
    `on_directory_offline` is called with a log directory that has failed.
    """

    loader: MetadataLoader
    clock: Clock
    random: Random
    broker_epoch: Callable[[], int]
    alter_partition_channel: NodeToControllerChannelManager
    assignments_channel: NodeToControllerChannelManager
    outgoing: Outgoing
    on_failure: Callable[[Exception], None]
    on_directory_offline: Callable[[Path], None]
