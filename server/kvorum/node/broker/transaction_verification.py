"""The verification of transactions before their first batch is appended (KIP-890).

In Kafka it is in the ReplicaManager (maybeSendPartitionsToTransactionCoordinator) and in the
AddPartitionsToTxnManager. One request is under way to each coordinator; what comes meanwhile is
asked together afterwards.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kvorum.broker.add_partitions_to_txn import (
    FIRST_VERSION_OF_BROKERS,
    PartitionErrors,
    TransactionBatch,
    TransactionData,
    TransactionQueue,
    TransactionSupportedOperation,
    is_verification_enabled,
)
from kvorum.broker.coordinators import coordinator_of_key
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.views.config_layers import config_layers
from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.ended_transactions import EndedTransactions
from kvorum.node.broker.inter_broker_senders import (
    BrokerConnection,
    Connections,
    InterBrokerSenders,
)
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.config import NodeConfig
from kvorum.node.coroutines import Promise, Signal
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.metrics.sensors import LatestValues
from kvorum.node.runtime import Runtime
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.log.verification_state import TransactionAppend, VerificationGuard
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)

_log = logging.getLogger(__name__)


class AddPartitionsToTxnManager:
    """A queue for each coordinator; `listener` is the one that brokers use.

    The broker is `own`, which is asked without a connection.
    """

    def __init__(
        self,
        connections: Connections,
        own: OwnBroker,
        listener: str,
        *,
        image: Callable[[], MetadataImage],
        runtime: Runtime,
    ) -> None:
        self._connections = connections
        self._listener = listener
        self._image = image
        self._runtime = runtime
        self._queues: dict[int, TransactionQueue] = {}
        self.verification_times_ms = LatestValues()
        """The times that coordinators have taken to answer."""
        self.refused_count = 0
        """The partitions that coordinators have refused."""
        self._senders = InterBrokerSenders(
            connections, own, runtime, take=self._take, ask=self._ask
        )

    async def add_or_verify_transaction(self, data: TransactionData) -> PartitionErrors:
        """Return what the coordinator refuses; without a coordinator to ask, every partition.

        The code then is COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR for a coordinator that is a
        broker without transactions, or NETWORK_EXCEPTION.
        """
        coordinator = coordinator_of_key(
            self._image(), CoordinatorType.TRANSACTION, data.transactional_id, self._listener
        )
        if coordinator is None:
            return data.errors(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node_id = coordinator.node_id
        asked_ms = self._runtime.monotonic_ms()
        answered: Promise[PartitionErrors] = Promise(self._runtime)
        self._queues.setdefault(node_id, TransactionQueue()).add(data, answered.settle)
        self._senders.wake(node_id)
        refused = await answered.result()
        self.verification_times_ms.record(self._runtime.monotonic_ms() - asked_ms)
        self.refused_count += len(refused)
        return refused

    def close(self) -> None:
        """Ask no coordinator any more; what waits is answered NETWORK_EXCEPTION."""
        self._senders.close()
        for node_id in self._queues:
            batch = self._take(node_id)
            if batch is not None:
                batch.fail(ErrorCode.NETWORK_EXCEPTION)

    def _take(self, node_id: int) -> TransactionBatch | None:
        return self._queues[node_id].take()

    async def _ask(self, connection: BrokerConnection, batch: TransactionBatch) -> None:
        offered = connection.peer_versions.get(ApiKey.ADD_PARTITIONS_TO_TXN)
        if offered is None:
            batch.fail(ErrorCode.NOT_COORDINATOR)
            return
        if offered[1] < FIRST_VERSION_OF_BROKERS:
            _log.warning(
                LogEvent(
                    "A transaction's coordinator cannot verify it", client=connection.client_id
                )
            )
            batch.skip()
            return
        response = await connection.send(
            batch.request,
            AddPartitionsToTxnResponse,
            timeout_ms=self._connections.request_timeout_ms,
            version=connection.version_for(AddPartitionsToTxnRequest),
        )
        batch.on_response(response)


class TransactionalProducer(NamedTuple):
    """A producer as its request names it, and what the version of that request supports."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    operation: TransactionSupportedOperation


@dataclass(slots=True)
class VerifiedPartitions:
    """The partitions that may not be appended to, with codes, and the guards of the others.

    `must_be_verified` is what the configuration said when the verification began.
    """

    must_be_verified: bool
    errors: dict[TopicPartition, ErrorCode] = field(default_factory=dict[TopicPartition, ErrorCode])
    guards: dict[TopicPartition, VerificationGuard] = field(
        default_factory=dict[TopicPartition, VerificationGuard]
    )

    def append_to(self, topic_partition: TopicPartition) -> TransactionAppend:
        """Return what the append to a partition has to say."""
        guard = self.guards.get(topic_partition)
        return TransactionAppend(guard=guard, must_be_verified=self.must_be_verified)


class TransactionVerification:
    """Starts a verification at each log, and asks the coordinator."""

    def __init__(
        self,
        config: NodeConfig,
        manager: AddPartitionsToTxnManager,
        loader: MetadataLoader,
        ended: EndedTransactions,
        runtime: Runtime,
    ) -> None:
        self._config = config
        self._manager = manager
        self._loader = loader
        self._ended = ended
        self._runtime = runtime

    @property
    def _is_enabled(self) -> bool:
        configs, config = self._loader.published.configs, self._config
        return is_verification_enabled(
            config_layers(configs, node_id=config.node_id, texts=config.texts)
        )

    async def verify(
        self, producer: TransactionalProducer, sequences: Mapping[Partition, int]
    ) -> VerifiedPartitions:
        """Verify, or add, partitions with the first sequence of the batch for each."""
        verified = VerifiedPartitions(self._is_enabled)
        if not producer.operation.supports_epoch_bump and not verified.must_be_verified:
            return verified
        for partition, sequence in sequences.items():
            self._start(producer, partition, sequence, verified)
        if verified.guards:
            data = TransactionData(
                producer.transactional_id,
                producer.producer_id,
                producer.producer_epoch,
                tuple(verified.guards),
                producer.operation,
            )
            verified.errors.update(await self._manager.add_or_verify_transaction(data))
        return verified

    async def verify_with_retries(
        self, producer: TransactionalProducer, sequences: Mapping[Partition, int]
    ) -> VerifiedPartitions:
        """Verify, and add again for a while what the end of the transaction before holds up.

        To send a batch of records once more would cost the producer more than to wait.
        """
        if not producer.operation.supports_epoch_bump:
            return await self.verify(producer, sequences)
        # Expected before the first question: the end may come between its answer and the wait.
        ended = self._ended.expect(producer.transactional_id)
        try:
            return await self._verify_until(ended, producer, sequences)
        finally:
            self._ended.forget(producer.transactional_id, ended)

    async def _verify_until(
        self, ended: Signal, producer: TransactionalProducer, sequences: Mapping[Partition, int]
    ) -> VerifiedPartitions:
        """Verify again upon the end of the transaction before, or after the configured pause."""
        settings = self._config.transactions
        timeout_ms = min(
            settings.add_partitions_retry_backoff_ms_max, self._config.network.request_timeout_ms
        )
        deadline_ms = self._runtime.monotonic_ms() + timeout_ms
        verified = await self.verify(producer, sequences)
        while (
            ErrorCode.CONCURRENT_TRANSACTIONS in verified.errors.values()
            and self._runtime.monotonic_ms() < deadline_ms
        ):
            await ended.wait(settings.add_partitions_retry_backoff_ms)
            ended.clear()
            verified = await self.verify(producer, sequences)
        return verified

    def _start(
        self,
        producer: TransactionalProducer,
        partition: Partition,
        sequence: int,
        verified: VerifiedPartitions,
    ) -> None:
        try:
            guard = partition.maybe_start_transaction_verification(
                producer.producer_id,
                sequence=sequence,
                epoch=producer.producer_epoch,
                supports_epoch_bump=producer.operation.supports_epoch_bump,
                wall_ms=self._runtime.wall_ms(),
            )
        except (LeaderRefusesError, ProducerError) as error:
            verified.errors[partition.topic_partition] = error.code
            return
        if guard is not None:
            verified.guards[partition.topic_partition] = guard
