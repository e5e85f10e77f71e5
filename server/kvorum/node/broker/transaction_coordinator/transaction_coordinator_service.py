"""The transaction coordinator of a broker (Kafka's TransactionCoordinator).

Methods raise RequestError with a code that clients know; what they await is a commit.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.coordinator.append_errors import append_error_to_response_error
from kvorum.metadata.api import RequestError
from kvorum.metadata.features import TRANSACTION_VERSION_FEATURE
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import TRANSACTION_STATE_TOPIC
from kvorum.node.broker.coordinator.context import CoordinatorContext, WriteOperation
from kvorum.node.broker.coordinator.runtime import CoordinatorRuntime
from kvorum.node.broker.coordinator.settings import CoordinatorSettings
from kvorum.node.broker.ended_transactions import EndedTransactions
from kvorum.node.broker.inter_broker_senders import Connections
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.broker.producer_id_manager import ProducerIdManager
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.transaction_coordinator.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from kvorum.node.config import NodeConfig
from kvorum.node.coroutines import Promise, sleep
from kvorum.node.runtime import Runtime
from kvorum.transactions.add_partitions import WantedPartitions
from kvorum.transactions.end_transaction import WantedEnd
from kvorum.transactions.init_producer_id import ExpectedProducer
from kvorum.transactions.listing import TransactionFilter
from kvorum.transactions.shard import TransactionCoordinatorShard, TransactionSurroundings
from kvorum.transactions.transaction_metadata import (
    TWO_PHASE_TIMEOUT_MS,
    TransactionMetadata,
    TransactionPartition,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_transactions import DescribeTransactionsResponse
from kvorum.wire.messages.end_txn import EndTxnResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.list_transactions import ListTransactionsResponse
from kvorum.wire.records import Compression
from kvorum.wire.records.batch import NO_SEQUENCE

Response = TypeVar("Response")
NO_LINGER_MS: Final = 0
"""Each record is a batch of its own, as in Kafka."""
COMPLETION_BACKOFF_MS: Final = 100
"""The pause before the last record of a transaction is written again."""


class TransactionCoordinatorService:
    """The transactional ids on this broker's partitions of ``__transaction_state``."""

    def __init__(
        self,
        config: NodeConfig,
        replicas: ReplicaManager,
        producer_ids: ProducerIdManager,
        *,
        connections: Connections,
        own: OwnBroker,
        ended: EndedTransactions,
        image: Callable[[], MetadataImage],
        runtime: Runtime,
    ) -> None:
        self._settings = config.transactions
        self._producer_ids = producer_ids
        self._ended = ended
        self._image = image
        self._runtime = runtime
        self.late_completion_count = 0
        """The transactions whose last record has to be written again."""
        self._markers = TransactionMarkerChannelManager(
            connections,
            own,
            config.listeners.inter_broker_name,
            image=image,
            runtime=runtime,
            complete=self._complete,
        )
        self.runtime = CoordinatorRuntime(
            CoordinatorSettings(
                topic=TRANSACTION_STATE_TOPIC,
                partition_count=config.transactions.topic.partition_count,
                compression=Compression.NONE,
                required_acks=ALL_IN_SYNC,
                base_sequence=NO_SEQUENCE,
                commit_timeout_ms=config.network.request_timeout_ms,
                append_linger_ms=NO_LINGER_MS,
                # Markers have the epoch in which they were begun, and an older one is fenced.
                loads_in_each_epoch=True,
            ),
            self._new_shard,
            replicas.partition,
            broker_id=config.node_id,
            runtime=runtime,
        )
        """The coordinators of this broker's partitions."""

    @property
    def leaderless_count(self) -> int:
        """The transactions whose markers wait for partitions to be led."""
        return self._markers.leaderless_count

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        """Follow a change of the image that the partitions have followed already."""
        self.runtime.on_image(before, after)
        for transactional_id in self._markers.ids():
            if not self.runtime.has_loaded(transactional_id):
                self._markers.remove(transactional_id)

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        self.runtime.close()
        self._markers.close()

    async def init_producer_id(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """Give the producer of a transactional id its id and epoch.

        Raises RequestError CONCURRENT_TRANSACTIONS once a transaction that was open is aborted.
        """
        self.runtime.demand_active()
        transactional_id = request.transactional_id
        if not transactional_id:
            raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
        timeout_ms = self._allowed_timeout_ms(request)
        context = self.runtime.context_for(transactional_id)
        await self._producer_ids.wait_for_id()
        expected = ExpectedProducer(request.producer_id, request.producer_epoch)
        return await self._write(
            context,
            lambda shard, now_ms: shard.init_producer_id(
                transactional_id, expected, timeout_ms, now_ms
            ),
        )

    async def add_partitions(self, wanted: WantedPartitions) -> ErrorCode:
        """Add partitions to a transaction; returns NONE."""
        context = self._context_for(wanted.transactional_id)
        return await self._write(
            context, lambda shard, now_ms: shard.add_partitions(wanted, now_ms)
        )

    def verify_partitions(
        self, wanted: WantedPartitions
    ) -> Mapping[TransactionPartition, ErrorCode]:
        """Return whether each partition is in the open transaction, by a code."""
        context = self._context_for(wanted.transactional_id)
        return context.read(lambda shard: shard.verify_partitions(wanted))

    async def end_transaction(self, wanted: WantedEnd) -> EndTxnResponse:
        """Decide a transaction's outcome; its markers are written afterwards."""
        context = self._context_for(wanted.transactional_id)
        return await self._write(
            context, lambda shard, now_ms: shard.end_transaction(wanted, now_ms)
        )

    def describe_transaction(
        self, transactional_id: str
    ) -> DescribeTransactionsResponse.TransactionState:
        """Describe a transactional id."""
        context = self._context_for(transactional_id)
        return context.read(lambda shard: shard.describe_transaction(transactional_id))

    def list_transactions(
        self, wanted: TransactionFilter
    ) -> list[ListTransactionsResponse.TransactionState]:
        """List the ids of this broker; raises RequestError while one partition is loaded."""
        self.runtime.demand_active()
        now_ms = self._runtime.wall_ms()
        listed: list[ListTransactionsResponse.TransactionState] = []
        for context in self.runtime.contexts():
            try:
                listed += context.read(lambda shard: shard.list_transactions(wanted, now_ms))
            except RequestError as error:
                if error.code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return listed

    def _allowed_timeout_ms(self, request: InitProducerIdRequest) -> int:
        """Return the time-out of a producer's transactions; raises RequestError for a wrong one."""
        settings = self._settings
        if request.enable2_pc and not settings.is_two_phase_commit_enabled:
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            raise RequestError.with_default_message(code)
        if request.keep_prepared_txn:
            raise RequestError.with_default_message(ErrorCode.UNSUPPORTED_VERSION)
        if request.enable2_pc:
            return TWO_PHASE_TIMEOUT_MS
        timeout_ms = request.transaction_timeout_ms
        if not 0 < timeout_ms <= settings.timeout_ms_max:
            raise RequestError.with_default_message(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return timeout_ms

    def _context_for(
        self, transactional_id: str
    ) -> CoordinatorContext[TransactionCoordinatorShard]:
        """Return the coordinator of an id, which a request names."""
        self.runtime.demand_active()
        if not transactional_id:
            raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
        return self.runtime.context_for(transactional_id)

    async def _write(
        self,
        context: CoordinatorContext[TransactionCoordinatorShard],
        decide: WriteOperation[TransactionCoordinatorShard, Response],
    ) -> Response:
        """Return the response of an operation that is committed."""
        written: Promise[Response | None] = Promise(self._runtime)
        try:
            context.write(decide, written.settle)
            response = await written.result()
        except RequestError as error:
            code = append_error_to_response_error(error.code)
            if code is error.code:
                raise
            raise RequestError.with_default_message(code) from error
        assert response is not None
        return response

    def _new_shard(self) -> TransactionCoordinatorShard:
        return TransactionCoordinatorShard(
            self._settings.coordinator,
            TransactionSurroundings(
                generate_producer_id=self._producer_ids.take_producer_id,
                finalized_version=self._finalized_version,
                write_markers=self._write_markers,
            ),
        )

    def _finalized_version(self) -> int:
        return self._image().features.level(TRANSACTION_VERSION_FEATURE) or 0

    def _write_markers(self, prepared: TransactionMetadata) -> None:
        context = self.runtime.context_for(prepared.transactional_id)
        self._markers.add(prepared, context.leader_epoch)

    async def _complete(self, prepared: TransactionMetadata) -> None:
        """Write the last record of a transaction until it is committed or coordinated elsewhere."""
        while True:
            try:
                context = self.runtime.context_for(prepared.transactional_id)
                await self._write(context, lambda shard, now_ms: shard.complete(prepared, now_ms))
            except RequestError:
                # NOT_COORDINATOR is also the answer of a log that lacks descriptors.
                if not self.runtime.has_loaded(prepared.transactional_id):
                    # The coordinator that loads the partition has the markers written again.
                    return
                await self._wait_to_complete()
            else:
                self._ended.tell(prepared.transactional_id)
                return

    async def _wait_to_complete(self) -> None:
        self.late_completion_count += 1
        try:
            await sleep(self._runtime, COMPLETION_BACKOFF_MS)
        finally:
            self.late_completion_count -= 1
