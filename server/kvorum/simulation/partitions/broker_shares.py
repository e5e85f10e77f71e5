"""The parts of a simulated broker that serve share groups (KIP-932)."""

from dataclasses import replace

from kvorum.broker.share_group_config_provider import ShareGroupConfigProvider
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import SHARE_GROUP_STATE_TOPIC
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.coordinator.coordinator_on_demand import CoordinatorOnDemand
from kvorum.node.broker.dead_letter_queue.dead_letter_sender import DeadLetterSender
from kvorum.node.broker.dead_letter_queue.share_group_dlq_manager import ShareGroupDLQManager
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.group_coordinator.network_partition_metadata_client import (
    NetworkPartitionMetadataClient,
)
from kvorum.node.broker.group_coordinator.share_group_service import ShareGroupService
from kvorum.node.broker.own_broker import Handle, OwnBroker
from kvorum.node.broker.purgatories import DelayedOperationPurgatory
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.share_coordinator.default_state_persister import DefaultStatePersister
from kvorum.node.broker.share_coordinator.share_coordinator_service import ShareCoordinatorService
from kvorum.node.broker.share_fetch.share_partition_manager import SharePartitionManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.handlers.registry import broker_api_versions
from kvorum.node.on_demand import OnDemand
from kvorum.node.services import BrokerServices
from kvorum.share_coordinator.share_group_offset import ShareGroupOffset
from kvorum.simulation.partitions.broker_connections import SimulatedConnections
from kvorum.simulation.partitions.broker_machine import BrokerMachine
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings


class BrokerShares:
    """The leader's share partitions of one process, its share coordinator, and its share groups.

    `handle` answers what the broker asks itself.
    """

    def __init__(
        self,
        listener: str,
        broker: ThisBroker,
        around: BrokerSurroundings,
        machine: BrokerMachine,
        *,
        replicas: ReplicaManager,
        publisher: BrokerMetadataPublisher,
        groups: GroupCoordinatorService,
        handle: Handle,
    ) -> None:
        settings = around.settings.groups.share
        assert settings is not None
        runtime = broker.runtime
        own = OwnBroker(broker.id, listener, broker_api_versions(), handle=handle, runtime=runtime)
        random = around.random_for(f"share groups of broker {broker.id}")

        def connections(client_id: str) -> SimulatedConnections:
            return SimulatedConnections(client_id, broker.id, around, machine, runtime)

        self.coordinator = ShareCoordinatorService(
            settings.of_share_coordinator, replicas, runtime=runtime
        )
        persister = DefaultStatePersister(
            connections("share-state"),
            own,
            listener,
            image=broker.image,
            create_topic=_create_nothing,
            draw=random.random,
            runtime=runtime,
        )
        self.partitions = SharePartitionManager(
            ShareGroupConfigProvider(settings.of_leaders, broker.image),
            replicas,
            persister,
            BatchInspector(runtime),
            DelayedOperationPurgatory(runtime),
            dead_letter_queue=ShareGroupDLQManager(
                DeadLetterSender(connections("share-group-dlq"), own, runtime),
                listener,
                image=broker.image,
                configs=TopicConfigs(broker.id, {}),
                create_topic=_create_nothing,
                threads=replicas.disk_threads,
                draw=random.random,
                runtime=runtime,
            ),
            runtime=runtime,
            random=random,
        )
        self._groups = ShareGroupService(
            groups,
            persister,
            NetworkPartitionMetadataClient(
                connections("network-partition-metadata-client"),
                own,
                listener,
                image=broker.image,
                draw=random.random,
                runtime=runtime,
            ),
            runtime=runtime,
        )
        publisher.after_change(self._on_image)
        self._coordinated = CoordinatorOnDemand(
            SHARE_GROUP_STATE_TOPIC, publisher, lambda: self.coordinator
        )

    def added_to(self, services: BrokerServices) -> BrokerServices:
        """Return the parts of a broker that has no share groups, with those of one that has."""
        return replace(
            services,
            coordinated_shares=self._coordinated,
            fetched_shares=OnDemand(lambda: self.partitions),
            coordinated_share_groups=OnDemand(lambda: self._groups),
        )

    def state(self, key: SharePartitionKey) -> ShareGroupOffset | None:
        """Return the state of a share partition, if this broker coordinates it."""
        for shard in self.coordinator.runtime.active_shards():
            kept = shard.states.get(key)
            if kept is not None:
                return kept.state
        return None

    def _on_image(self, _: MetadataImage, after: MetadataImage) -> None:
        self.partitions.on_image(after)


async def _create_nothing(_: str) -> None:
    """Do nothing: the topics are created in the beginning."""
