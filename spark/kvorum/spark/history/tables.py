"""The tables by name, and the row type of each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.spark.history.change_rows import (
    AclChangeRow,
    ConfigChangeRow,
    DelegationTokenChangeRow,
    FeatureChangeRow,
    ProducerIdsRow,
    QuotaChangeRow,
    ScramChangeRow,
)
from kvorum.spark.history.node_rows import (
    BrokerSessionRow,
    BrokerStateRow,
    ControllerRegistrationRow,
)
from kvorum.spark.history.partition_rows import (
    AvailabilityRow,
    LeaderChangeRow,
    PartitionTimelineRow,
)
from kvorum.spark.history.quorum_rows import QuorumEpochRow, QuorumVotersRow
from kvorum.spark.history.state_rows import (
    AclRow,
    BrokerRow,
    ConfigRow,
    FeatureRow,
    PartitionRow,
    QuotaRow,
    TopicRow,
    VoterRow,
)

HistoryRow: TypeAlias = (
    PartitionTimelineRow
    | LeaderChangeRow
    | AvailabilityRow
    | BrokerSessionRow
    | BrokerStateRow
    | ControllerRegistrationRow
    | ConfigChangeRow
    | AclChangeRow
    | QuotaChangeRow
    | ScramChangeRow
    | FeatureChangeRow
    | DelegationTokenChangeRow
    | ProducerIdsRow
    | QuorumEpochRow
    | QuorumVotersRow
)
StateRow: TypeAlias = (
    TopicRow | PartitionRow | BrokerRow | ConfigRow | AclRow | QuotaRow | FeatureRow | VoterRow
)

HISTORY_TABLES: Final[Mapping[str, type[HistoryRow]]] = MappingProxyType(
    {
        "partition_timeline": PartitionTimelineRow,
        "leader_changes": LeaderChangeRow,
        "availability": AvailabilityRow,
        "broker_sessions": BrokerSessionRow,
        "broker_states": BrokerStateRow,
        "controller_registrations": ControllerRegistrationRow,
        "config_history": ConfigChangeRow,
        "acl_history": AclChangeRow,
        "quota_history": QuotaChangeRow,
        "scram_history": ScramChangeRow,
        "feature_history": FeatureChangeRow,
        "delegation_token_history": DelegationTokenChangeRow,
        "producer_ids": ProducerIdsRow,
        "quorum_epochs": QuorumEpochRow,
        "quorum_voters": QuorumVotersRow,
    }
)
"""The tables of what happened, by name."""

STATE_TABLES: Final[Mapping[str, type[StateRow]]] = MappingProxyType(
    {
        "topics": TopicRow,
        "partitions": PartitionRow,
        "brokers": BrokerRow,
        "configs": ConfigRow,
        "acls": AclRow,
        "quotas": QuotaRow,
        "features": FeatureRow,
        "voters": VoterRow,
    }
)
"""The tables of the state at the end, by name."""
