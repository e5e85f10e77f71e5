"""A controller with its log, in memory, and clusters of it: asked, changed and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import TypeVar

from kvorum.controller.activation_records_generator import activation_records
from kvorum.controller.api import ControllerResult
from kvorum.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kvorum.controller.controller_mutation_quota import MutationQuota
from kvorum.controller.quorum_description import NO_QUORUM, QuorumDescription
from kvorum.controller.requests import handle
from kvorum.controller.settings import ControllerRequestContext, ControllerSettings
from kvorum.metadata.bootstrap import bootstrap_from_features
from kvorum.metadata.features import kafka_feature_levels, supported_features
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED
from kvorum.wire.messages.alter_partition import AlterPartitionRequest
from kvorum.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kvorum.wire.messages.controller_registration import ControllerRegistrationRequest
from kvorum.wire.messages.create_topics import CreateTopicsRequest
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)
CLUSTER_ID = "abcdefghijklmnopqrstuv"
SETTINGS = ControllerSettings(node_id=1, cluster_id=CLUSTER_ID)


def directory_of(broker_id: int, number: int = 0) -> bytes:
    return bytes([0xD0 + number, *bytes(14), broker_id])


@dataclass(frozen=True)
class RegisteredBroker:
    """A broker of a controller's cluster, which knows the metadata at once."""

    controller: ControllerUnderTest
    id: int

    def epoch(self) -> int:
        return self.controller.image.cluster.brokers[self.id].epoch

    def image(self) -> MetadataImage:
        return self.controller.image


@dataclass
class ControllerUnderTest:
    """The pending image, the offset of the next record, and everything written so far."""

    settings: ControllerSettings = SETTINGS
    image: MetadataImage = field(default_factory=MetadataImage)
    next_offset: int = 0
    now_ms: float = 0.0
    kraft_version: int = 1
    kraft_upgrade_problem: str | None = None
    quorum: QuorumDescription = NO_QUORUM
    mutation_quota: MutationQuota | None = None
    random: Random = field(default_factory=lambda: Random(7))
    records: list[RecordAndVersion] = field(default_factory=list[RecordAndVersion])
    last_records: tuple[RecordAndVersion, ...] = ()

    def __post_init__(self) -> None:
        self.sessions = BrokerHeartbeatManager(self.settings.session_timeout_ms)

    @property
    def written(self) -> list[Message]:
        return [message for message, _ in self.last_records]

    def context(
        self, api_version: int = 0, *, is_forwarded: bool = False
    ) -> ControllerRequestContext:
        return ControllerRequestContext(
            settings=self.settings,
            sessions=self.sessions,
            random=self.random,
            now_ms=self.now_ms,
            next_offset=self.next_offset,
            access=UNRESTRICTED,
            principal=ANONYMOUS,
            api_version=api_version,
            listener="CONTROLLER",
            is_forwarded=is_forwarded,
            kraft_version=self.kraft_version,
            leader_id=self.settings.node_id,
            mutation_quota=self.mutation_quota,
            describe_quorum=lambda: self.quorum,
            kraft_upgrade_problem=lambda _: self.kraft_upgrade_problem,
        )

    def commit(self, records: tuple[RecordAndVersion, ...]) -> None:
        """Append records to the log and fold them."""
        self.last_records = records
        for message, version in records:
            # Records must fit into the log.
            message.encode(version)
            self.image = self.image.apply(message, version, self.next_offset)
            self.next_offset += 1
        self.records.extend(records)

    def run(self, result: ControllerResult[object]) -> None:
        self.commit(result.records)

    def ask(
        self, request: Message, api_version: int | None = None, *, is_forwarded: bool = False
    ) -> Message:
        """Return the answer to `request`, whose records are committed."""
        version = type(request).MAX_VERSION if api_version is None else api_version
        result = handle(self.image, request, self.context(version, is_forwarded=is_forwarded))
        result.response.encode(version)
        self.commit(result.records)
        return result.response

    def answer(
        self,
        kind: type[Response],
        request: Message,
        api_version: int | None = None,
        *,
        is_forwarded: bool = False,
    ) -> Response:
        """Return the answer to `request`, which must be of this kind."""
        response = self.ask(request, api_version, is_forwarded=is_forwarded)
        assert isinstance(response, kind)
        return response

    def partition(self, name: str, index: int = 0) -> PartitionRegistration:
        topic = self.image.topics.by_name(name)
        assert topic is not None
        return topic.partitions[index]

    def activate(self, version: MetadataVersion = MetadataVersion.V4_3_IV0) -> None:
        bootstrap = bootstrap_from_features(version, kafka_feature_levels(version), source="a test")
        self.run(activation_records(self.image, bootstrap, self.settings))

    def registration(
        self, broker_id: int, *, rack: str | None = None, incarnation: int = 0
    ) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=bytes([1 + incarnation, *bytes(14), broker_id]),
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name="PLAIN", host=f"host-{broker_id}", port=9000 + broker_id
                )
            ],
            features=[
                BrokerRegistrationRequest.Feature(name, range_.min, range_.max)
                for name, range_ in supported_features().items()
            ],
            rack=rack,
            log_dirs=[directory_of(broker_id)],
        )

    def register(self, broker_id: int, *, rack: str | None = None, incarnation: int = 0) -> int:
        """Register a broker and return its epoch."""
        request = self.registration(broker_id, rack=rack, incarnation=incarnation)
        response = self.answer(BrokerRegistrationResponse, request)
        assert response.error_code == 0
        return response.broker_epoch

    def register_controller(self, node_id: int) -> None:
        listener = ControllerRegistrationRequest.Listener("CONTROLLER", f"c{node_id}", 9093, 0)
        self.ask(
            ControllerRegistrationRequest(
                controller_id=node_id, incarnation_id=bytes([node_id] * 16), listeners=[listener]
            )
        )

    def heartbeat(
        self,
        broker_id: int,
        *,
        want_fence: bool = False,
        want_shut_down: bool = False,
        metadata_offset: int | None = None,
        cordoned_log_dirs: list[bytes] | None = None,
    ) -> BrokerHeartbeatResponse:
        """Send a heartbeat of a registered broker that has read everything."""
        epoch = self.image.cluster.brokers[broker_id].epoch
        self.sessions.contact(broker_id, epoch, self.now_ms)
        return self.answer(
            BrokerHeartbeatResponse,
            BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=epoch,
                current_metadata_offset=(
                    self.next_offset - 1 if metadata_offset is None else metadata_offset
                ),
                want_fence=want_fence,
                want_shut_down=want_shut_down,
                cordoned_log_dirs=cordoned_log_dirs,
            ),
        )

    def start_broker(self, broker_id: int) -> None:
        self.register(broker_id)
        assert not self.heartbeat(broker_id).is_fenced

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        assignments: Sequence[Sequence[int]] = (),
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Create a topic; `assignments` are the replicas of each partition instead of counts."""
        topic = CreateTopicsRequest.CreatableTopic(
            name,
            num_partitions=-1 if assignments else partitions,
            replication_factor=-1 if assignments else replicas,
            assignments=[
                CreateTopicsRequest.CreatableReplicaAssignment(index, list(ids))
                for index, ids in enumerate(assignments)
            ],
            configs=[CreateTopicsRequest.CreatableTopicConfig(*one) for one in configs.items()],
        )
        self.ask(CreateTopicsRequest(topics=[topic]))
        assert name in self.image.topics.ids


def with_static_configs(**settings: str) -> ControllerSettings:
    """Settings of a controller whose properties file says so; dots are written as underscores."""
    texts = {name.replace("_", "."): value for name, value in settings.items()}
    return ControllerSettings(
        node_id=1, cluster_id=CLUSTER_ID, static_configs=MappingProxyType(texts)
    )


def started_cluster(
    brokers: int = 3, *, version: MetadataVersion = MetadataVersion.V4_3_IV0
) -> ControllerUnderTest:
    """A cluster at `version` with brokers 1, 2, ... in service."""
    controller = ControllerUnderTest()
    controller.activate(version)
    for broker_id in range(1, brokers + 1):
        controller.start_broker(broker_id)
    return controller


PREFERRED, UNCLEAN = 0, 1


def cluster_with_topic(*replicas: int, is_unclean_enabled: bool = False) -> ControllerUnderTest:
    """A cluster of brokers 1 to 4 with a topic of one partition, which the first replica leads."""
    controller = started_cluster(brokers=4)
    configs = {"unclean.leader.election.enable": "true"} if is_unclean_enabled else {}
    controller.create_topic("orders", assignments=[replicas], configs=configs)
    assert partition_of(controller).leader == replicas[0]
    return controller


def partition_of(controller: ControllerUnderTest) -> PartitionRegistration:
    return controller.partition("orders")


def propose_isr(controller: ControllerUnderTest, *isr: int) -> None:
    """Let the leader of the topic's partition change its ISR."""
    partition = partition_of(controller)
    brokers = controller.image.cluster.brokers
    data = AlterPartitionRequest.PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr_with_epochs=[
            AlterPartitionRequest.BrokerState(id_, brokers[id_].epoch) for id_ in isr
        ],
    )
    topic = AlterPartitionRequest.TopicData(controller.image.topics.ids["orders"], [data])
    epoch = brokers[partition.leader].epoch
    controller.ask(AlterPartitionRequest(partition.leader, epoch, [topic]))


def fence(controller: ControllerUnderTest, broker_id: int) -> None:
    controller.heartbeat(broker_id, want_fence=True)
    assert controller.image.cluster.brokers[broker_id].is_fenced


def elect(controller: ControllerUnderTest, election_type: int) -> None:
    controller.ask(ElectLeadersRequest(election_type=election_type, topic_partitions=None))


def reassign(controller: ControllerUnderTest, replicas: list[int] | None) -> None:
    target = AlterPartitionReassignmentsRequest.ReassignablePartition(0, replicas)
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic("orders", [target])
    controller.ask(AlterPartitionReassignmentsRequest(topics=[topic]))
