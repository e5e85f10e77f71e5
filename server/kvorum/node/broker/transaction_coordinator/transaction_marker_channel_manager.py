"""The way of markers to the partitions of a transaction (Kafka's TransactionMarkerChannelManager).

A partition without a leader is waited for, and only a deleted one is left out: a transaction that
ends in some of its partitions alone would be torn.
"""

import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeAlias

from kvorum.broker.coordinators import coordinator_node
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.inter_broker_senders import (
    BrokerConnection,
    Connections,
    InterBrokerSenders,
)
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.broker.transaction_coordinator.marker_batch import (
    MarkerBatch,
    MarkerCodes,
    WaitingMarker,
)
from kvorum.node.coroutines import Promise, Task, Wait, all_of, other_work, sleep
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.transactions.transaction_metadata import TransactionMetadata, TransactionPartition
from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

RETRY_BACKOFF_MS: Final = 50
"""The pause before partitions that could not take their marker are tried again."""
_DONE: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""The codes of partitions that have their marker, or can have none."""
_FENCED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)
"""The codes upon which another coordinator has taken over, or the producer has gone on."""
_TEMPORARY: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
Complete: TypeAlias = Callable[[TransactionMetadata], Coroutine[Wait[Any], Any, None]]
_log = logging.getLogger(__name__)


class TransactionMarkerChannelManager:
    """Writes the markers of transactions, each until all partitions have theirs.

    `complete` is called after that. `listener` is the one that brokers use. The broker is `own`,
    which is asked without a connection.
    """

    def __init__(
        self,
        connections: Connections,
        own: OwnBroker,
        listener: str,
        *,
        image: Callable[[], MetadataImage],
        runtime: Runtime,
        complete: Complete,
    ) -> None:
        self._connections = connections
        self._listener = listener
        self._image = image
        self._runtime = runtime
        self._complete = complete
        self._waiting: dict[int, list[WaitingMarker]] = {}
        self._tasks: dict[str, Task[None]] = {}
        self._leaderless: set[str] = set()
        self._senders = InterBrokerSenders(
            connections, own, runtime, take=self._take, ask=self._ask
        )

    def add(self, prepared: TransactionMetadata, coordinator_epoch: int) -> None:
        """Write the markers of a transaction, in place of those of an earlier one of the id."""
        transactional_id = prepared.transactional_id
        self.remove(transactional_id)
        ending = self._end(prepared, coordinator_epoch)
        self._tasks[transactional_id] = Task(ending, partial(self._ended, transactional_id))

    def remove(self, transactional_id: str) -> None:
        """Write no more markers of an id, which is coordinated elsewhere, or loaded again."""
        task = self._tasks.pop(transactional_id, None)
        self._leaderless.discard(transactional_id)
        if task is not None:
            task.close()

    @property
    def leaderless_count(self) -> int:
        """The transactions whose markers wait for partitions to be led."""
        return len(self._leaderless)

    def ids(self) -> tuple[str, ...]:
        """Return the ids whose markers are being written."""
        return tuple(self._tasks)

    def close(self) -> None:
        """Write no more markers; the next coordinator writes those that are missing."""
        for transactional_id in self.ids():
            self.remove(transactional_id)
        self._senders.close()

    def _ended(self, transactional_id: str, result: Exception | None) -> None:
        del self._tasks[transactional_id]
        self._leaderless.discard(transactional_id)
        if result is not None:
            _log.error("The end of a transaction failed: %s", transactional_id, exc_info=result)

    async def _end(self, prepared: TransactionMetadata, coordinator_epoch: int) -> None:
        marker = TransactionMarker(
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            coordinator_epoch=coordinator_epoch,
            is_commit=prepared.state is TransactionState.PREPARE_COMMIT,
            transaction_version=prepared.client_version,
        )
        # The shard that has asked for this is not done with its own step yet.
        await other_work(self._runtime)
        left = set(prepared.partitions)
        while left:
            codes = await self._write(marker, left)
            if not _FENCED.isdisjoint(codes.values()):
                _log.warning(
                    LogEvent(
                        "The end of a transaction is given up: another one has followed",
                        transactional_id=prepared.transactional_id,
                    )
                )
                return
            left = {where for where in left if codes.get(where) not in _DONE}
            self._tell_unexpected(prepared.transactional_id, codes)
            self._note_leaderless(prepared.transactional_id, left.difference(codes))
            if left:
                await sleep(self._runtime, RETRY_BACKOFF_MS)
        await self._complete(prepared)

    def _note_leaderless(
        self, transactional_id: str, partitions: set[TransactionPartition]
    ) -> None:
        if partitions:
            self._leaderless.add(transactional_id)
        else:
            self._leaderless.discard(transactional_id)

    def _tell_unexpected(self, transactional_id: str, codes: MarkerCodes) -> None:
        for where, code in codes.items():
            if code not in _DONE and code not in _TEMPORARY:
                _log.error(
                    LogEvent(
                        "A partition does not take the end of a transaction",
                        transactional_id=transactional_id,
                        partition=f"{where.topic}-{where.partition}",
                        error=code.name,
                    )
                )

    async def _write(
        self, marker: TransactionMarker, partitions: set[TransactionPartition]
    ) -> MarkerCodes:
        """Try each partition once; one that is deleted is done, one without a leader is not."""
        codes: dict[TransactionPartition, ErrorCode] = {}
        by_leader: dict[int, list[TransactionPartition]] = {}
        image = self._image()
        for where in sorted(partitions):
            topic = image.topics.by_name(where.topic)
            if topic is None or where.partition not in topic.partitions:
                codes[where] = ErrorCode.NONE
                continue
            leader = coordinator_node(image, where.topic, where.partition, self._listener)
            if leader is not None:
                by_leader.setdefault(leader.node_id, []).append(where)
        asked = [self._write_at(node_id, marker, some) for node_id, some in by_leader.items()]
        answers = await all_of(self._runtime, asked)
        for answered in answers:
            codes.update(answered)
        return codes

    async def _write_at(
        self, node_id: int, marker: TransactionMarker, partitions: list[TransactionPartition]
    ) -> MarkerCodes:
        answered: Promise[MarkerCodes] = Promise(self._runtime)
        waiting = WaitingMarker(marker, tuple(partitions), answered.settle)
        self._waiting.setdefault(node_id, []).append(waiting)
        self._senders.wake(node_id)
        return await answered.result()

    def _take(self, node_id: int) -> MarkerBatch | None:
        waiting = self._waiting.pop(node_id, None)
        return None if waiting is None else MarkerBatch(waiting)

    async def _ask(self, connection: BrokerConnection, batch: MarkerBatch) -> None:
        response = await connection.send(
            batch.request,
            WriteTxnMarkersResponse,
            timeout_ms=self._connections.request_timeout_ms,
            version=connection.version_for(WriteTxnMarkersRequest),
        )
        batch.on_response(response)
