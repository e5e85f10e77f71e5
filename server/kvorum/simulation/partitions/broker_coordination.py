"""The parts of a simulated broker that coordinate transactions, and verify those of others."""

from collections.abc import Callable
from typing import Any, cast

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import TRANSACTION_STATE_TOPIC
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.coordinator.coordinator_on_demand import CoordinatorOnDemand
from kvorum.node.broker.ended_transactions import EndedTransactions
from kvorum.node.broker.own_broker import Handle, OwnBroker
from kvorum.node.broker.producer_id_manager import ProducerIdManager
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.broker.transaction_coordinator.transaction_coordinator_service import (
    TransactionCoordinatorService,
)
from kvorum.node.broker.transaction_verification import (
    AddPartitionsToTxnManager,
    TransactionVerification,
)
from kvorum.node.config import NodeConfig
from kvorum.node.handlers.registry import broker_api_versions
from kvorum.simulation.partitions.broker_connections import SimulatedConnections
from kvorum.simulation.partitions.broker_machine import BrokerMachine
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.outbound import SimulatedControllerChannel


class PublishedImage:
    """The metadata that the broker has published, as handlers ask for them."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    @property
    def published(self) -> MetadataImage:
        """The image."""
        return self._image()


class BrokerCoordination:
    """The coordinator of one process, and what its leaders ask other coordinators.

    `handle` answers what the broker asks itself.
    """

    def __init__(
        self,
        config: NodeConfig,
        broker: ThisBroker,
        around: BrokerSurroundings,
        machine: BrokerMachine,
        *,
        replicas: ReplicaManager,
        publisher: BrokerMetadataPublisher,
        channel: SimulatedControllerChannel,
        handle: Handle,
    ) -> None:
        runtime, listener = broker.runtime, config.listeners.inter_broker_name
        own = OwnBroker(broker.id, listener, broker_api_versions(), handle=handle, runtime=runtime)

        def connections(client_id: str) -> SimulatedConnections:
            return SimulatedConnections(client_id, broker.id, around, machine, runtime)

        self.producer_ids = ProducerIdManager(
            channel, runtime, broker_id=broker.id, broker_epoch=broker.epoch
        )
        manager = AddPartitionsToTxnManager(
            connections("add-partitions"),
            own,
            listener,
            image=broker.image,
            runtime=runtime,
        )
        ended = EndedTransactions(runtime)
        self.verification = TransactionVerification(
            config, manager, cast("Any", PublishedImage(broker.image)), ended, runtime
        )
        self.service = TransactionCoordinatorService(
            config,
            replicas,
            self.producer_ids,
            connections=connections("markers"),
            own=own,
            ended=ended,
            image=broker.image,
            runtime=runtime,
        )
        self.on_demand = CoordinatorOnDemand(
            TRANSACTION_STATE_TOPIC, publisher, lambda: self.service
        )
