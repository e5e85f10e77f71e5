"""The parts of a node that the handlers of each listener use, and the classes of their APIs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.fetch_session.fetch_manager import FetchManager
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManagers
from kvorum.broker.replica_selector import RackAwareReplicaSelector
from kvorum.node.broker.auto_topic_creation_manager import AutoTopicCreationManager
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.delayed_operation import Purgatories
from kvorum.node.broker.forwarding_manager import ForwardingManager
from kvorum.node.broker.group_coordinator.group_coordination import GroupCoordination
from kvorum.node.broker.hosting import Hosting
from kvorum.node.broker.producer_id_manager import ProducerIdManager
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.request_handler_helper import RequestHandlerHelper
from kvorum.node.broker.transaction_verification import TransactionVerification
from kvorum.node.clock import Clock
from kvorum.node.config import NodeConfig
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.controller.quorum_reassignment_manager import QuorumReassignmentManager
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.node.serving.listener_api import ListenerApi
from kvorum.node.serving.request_handler import GiveAccess
from kvorum.node.serving.request_metrics import RequestChannelMetrics
from kvorum.wire.primitives import Message

if TYPE_CHECKING:
    from kvorum.node.broker.group_coordinator.group_coordinator_service import (
        GroupCoordinatorService,
    )
    from kvorum.node.broker.metadata_topic import MetadataTopic

VersionRanges = Mapping[int, tuple[int, int]]
"""The lowest and highest version by API key."""
Request = TypeVar("Request", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerServices:
    """The broker's side of a node; `served` returns the APIs that its listeners serve now.

    `metadata_topic` is None unless consumers may read ``__cluster_metadata``, `replica_selector`
    unless they may be sent to followers.
    """

    config: NodeConfig
    cluster_id: str
    raft: RaftNode
    loader: MetadataLoader
    forwarder: ForwardingManager
    topic_creator: AutoTopicCreationManager
    metadata_topic: MetadataTopic | None
    replicas: ReplicaManager
    publisher: BrokerMetadataPublisher
    replication_quotas: ReplicationQuotaManagers
    inspector: BatchInspector
    producer_ids: ProducerIdManager
    fetch_sessions: FetchManager
    replica_selector: RackAwareReplicaSelector | None
    group_coordination: GroupCoordination
    transactions: TransactionVerification
    throttling: RequestHandlerHelper
    purgatories: Purgatories
    clock: Clock
    random: Random
    served: Callable[[], VersionRanges]

    @property
    def groups(self) -> GroupCoordinatorService:
        """The group coordinator."""
        return self.group_coordination.service

    @property
    def topic_stats(self) -> BrokerTopicStats:
        """The counts of records, by topic."""
        return self.replicas.stats.topics

    @property
    def hosting(self) -> Hosting:
        """The partitions of this broker, by the topics of the image that is published."""
        return Hosting(self.loader.published.topics, self.replicas, self.publisher)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerServices:
    """The controller's side of a node; `give_access` serves requests in an Envelope."""

    config: NodeConfig
    cluster_id: str
    clock: Clock
    request_metrics: RequestChannelMetrics
    raft: RaftNode
    loader: MetadataLoader
    quorum_controller: QuorumController
    reassignment: QuorumReassignmentManager
    served: VersionRanges
    give_access: GiveAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerApi(ListenerApi[BrokerServices, Request]):
    """One API on a broker's listeners."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerListenerApi(ListenerApi[ControllerServices, Request]):
    """One API on a controller's listeners."""
