"""The verification of transactions before their first batch is appended (KIP-890).

In Kafka it is a part of the ReplicaManager (maybeSendPartitionsToTransactionCoordinator).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvorum.broker.add_partitions_to_txn import (
    TransactionData,
    TransactionSupportedOperation,
    is_verification_enabled,
)
from kvorum.broker.coordinators import is_transaction_state_known
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.errors import LeaderRefusesError
from kvorum.broker.views.config_layers import config_layers
from kvorum.node.broker.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from kvorum.node.clock import Clock
from kvorum.node.config import NodeConfig
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.log.verification_state import TransactionAppend, VerificationGuard
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode

_MS_PER_S: Final = 1000


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
        clock: Clock,
    ) -> None:
        self._config = config
        self._manager = manager
        self._loader = loader
        self._clock = clock

    @property
    def is_coordinated(self) -> bool:
        """Whether there is a coordinator of transactions in the cluster, as far as is known."""
        return is_transaction_state_known(self._loader.published)

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
        settings = self._config.transactions
        timeout_ms = min(
            settings.add_partitions_retry_backoff_ms_max, self._config.network.request_timeout_ms
        )
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        verified = await self.verify(producer, sequences)
        while (
            producer.operation.supports_epoch_bump
            and ErrorCode.CONCURRENT_TRANSACTIONS in verified.errors.values()
            and self._clock.monotonic_ms() < deadline_ms
        ):
            await asyncio.sleep(settings.add_partitions_retry_backoff_ms / _MS_PER_S)
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
                wall_ms=self._clock.wall_ms(),
            )
        except (LeaderRefusesError, ProducerError) as error:
            verified.errors[partition.topic_partition] = error.code
            return
        if guard is not None:
            verified.guards[partition.topic_partition] = guard
