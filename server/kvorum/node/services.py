"""The parts of a node that the handlers of each listener use, and the classes of their APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.fetch_session.context import FetchManager
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManagers
from kvorum.broker.replica_selector import RackAwareReplicaSelector
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.standard_authorizer import Access
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.broker.auto_topic_creation_manager import AutoTopicCreationManager
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.coordinator.coordinator_on_demand import CoordinatorOnDemand
from kvorum.node.broker.forwarding_manager import ForwardingManager
from kvorum.node.broker.producer_id_manager import ProducerIdManager
from kvorum.node.broker.purgatories import Purgatories
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.request_handler_helper import RequestHandlerHelper
from kvorum.node.broker.transaction_verification import TransactionVerification
from kvorum.node.config import NodeConfig
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.controller.quorum_reassignment_manager import QuorumReassignmentManager
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.on_demand import OnDemand
from kvorum.node.raft import RaftNode
from kvorum.node.runtime import Runtime
from kvorum.node.serving.request_handler import GiveAccess, ListenerApi
from kvorum.node.serving.request_metrics import RequestChannelMetrics
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import ZERO_UUID

if TYPE_CHECKING:
    from kvorum.node.broker.group_coordinator.group_coordinator_service import (
        GroupCoordinatorService,
    )
    from kvorum.node.broker.group_coordinator.share_group_service import ShareGroupService
    from kvorum.node.broker.metadata_topic import MetadataTopic
    from kvorum.node.broker.share_coordinator.share_coordinator_service import (
        ShareCoordinatorService,
    )
    from kvorum.node.broker.share_fetch.share_partition_manager import SharePartitionManager
    from kvorum.node.broker.transaction_coordinator.transaction_coordinator_service import (
        TransactionCoordinatorService,
    )

NEW_PARTITION_TIMEOUT_MS: Final = 5_000
"""The wait of requests that have no timeout of their own, or one for something else.

A busy machine has needed two seconds to make the log of a partition.
"""
VersionRanges = Mapping[int, tuple[int, int]]
"""The lowest and highest version by API key."""
Request = TypeVar("Request", bound=Message)


class TopicChoice(NamedTuple):
    """A topic as a request names it: by name, or by id in versions that have ids.

    `references` counts how often, for the authorizer's log.
    """

    name: str
    topic_id: bytes = ZERO_UUID
    is_by_id: bool = False
    references: int = 1


class Hosting(NamedTuple):
    """The views that a request for records is looked up in."""

    topics: TopicsImage
    replicas: ReplicaManager
    publisher: BrokerMetadataPublisher

    def topic(self, choice: TopicChoice, operation: AclOperation, access: Access) -> TopicImage:
        """Return the topic.

        Raises RequestError: UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED before a client learns
        whether a name exists, or UNKNOWN_TOPIC_OR_PARTITION.
        """
        topic = self._find(choice)
        name = choice.name if topic is None else topic.name
        if not access.allows_on_topic(operation, name, references=choice.references):
            raise RequestError.with_default_message(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    def topic_for_broker(self, choice: TopicChoice) -> TopicImage:
        """Return the topic for another broker, whose permission is not the topic's.

        Raises RequestError: UNKNOWN_TOPIC_ID, or UNKNOWN_TOPIC_OR_PARTITION.
        """
        topic = self._find(choice)
        if topic is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    def _find(self, choice: TopicChoice) -> TopicImage | None:
        if choice.name:
            return self.topics.by_name(choice.name)
        topic = self.topics.by_id.get(choice.topic_id)
        if topic is None and (choice.is_by_id or choice.topic_id != ZERO_UUID):
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic

    def known(self, partitions: Iterable[tuple[str, int]]) -> Iterator[tuple[TopicImage, int]]:
        """Yield those partitions, by topic and index, whose topic exists."""
        for name, index in partitions:
            topic = self.topics.by_name(name)
            if topic is not None:
                yield topic, index

    async def wait_until_led(
        self,
        partitions: Iterable[tuple[TopicImage, int]],
        *,
        timeout_ms: int = NEW_PARTITION_TIMEOUT_MS,
    ) -> None:
        """Wait for new partitions, whose leader clients know before it has made their logs.

        Nothing is looked up while the partitions are as the published image has them.
        """
        publisher = self.publisher
        if publisher.is_current:
            return
        keys = {
            (topic.id, index)
            for topic, index in partitions
            if (found := topic.partitions.get(index)) is not None
            and found.leader == self.replicas.broker_id
        }
        await publisher.wait_until(lambda: all(map(self._is_led, keys)), timeout_ms=timeout_ms)

    def _is_led(self, key: tuple[bytes, int]) -> bool:
        partition = self.replicas.partition(*key)
        return partition is not None and partition.is_leader

    def partition(self, topic: TopicImage, index: int) -> Partition:
        """Return a partition that this broker hosts.

        Raises RequestError: UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER where this broker
        does not have it, or KAFKA_STORAGE_ERROR where its log directory is offline.
        """
        if topic.partitions.get(index) is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition = self.replicas.partition(topic.id, index)
        if partition is None:
            raise RequestError.with_default_message(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if partition.is_offline:
            raise RequestError.with_default_message(ErrorCode.KAFKA_STORAGE_ERROR)
        return partition


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
    coordinated_groups: CoordinatorOnDemand[GroupCoordinatorService]
    coordinated_transactions: CoordinatorOnDemand[TransactionCoordinatorService]
    coordinated_shares: CoordinatorOnDemand[ShareCoordinatorService]
    fetched_shares: OnDemand[SharePartitionManager]
    coordinated_share_groups: OnDemand[ShareGroupService]
    transactions: TransactionVerification
    throttling: RequestHandlerHelper
    purgatories: Purgatories
    runtime: Runtime
    random: Random
    served: Callable[[], VersionRanges]
    check_stores: Callable[[Mapping[str, str]], None]

    @property
    def groups(self) -> GroupCoordinatorService:
        """The group coordinator."""
        return self.coordinated_groups.service

    @property
    def share_groups(self) -> ShareGroupService:
        """The share groups that this broker coordinates."""
        return self.coordinated_share_groups.part

    @property
    def transaction_coordinator(self) -> TransactionCoordinatorService:
        """The transaction coordinator."""
        return self.coordinated_transactions.service

    @property
    def share_coordinator(self) -> ShareCoordinatorService:
        """The share coordinator."""
        return self.coordinated_shares.service

    @property
    def share_partitions(self) -> SharePartitionManager:
        """The share partitions of this broker, and the sessions of their members."""
        return self.fetched_shares.part

    @property
    def topic_stats(self) -> BrokerTopicStats:
        """The counts of records, by topic."""
        return self.replicas.topic_stats

    @property
    def hosting(self) -> Hosting:
        """The partitions of this broker, by the topics of the image that is published."""
        return Hosting(self.loader.published.topics, self.replicas, self.publisher)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerServices:
    """The controller's side of a node; `give_access` serves requests in an Envelope."""

    config: NodeConfig
    cluster_id: str
    runtime: Runtime
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
