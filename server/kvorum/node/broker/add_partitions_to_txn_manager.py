"""Asks the coordinators of transactions about partitions (Kafka's AddPartitionsToTxnManager).

One request is under way to each coordinator; what comes meanwhile is asked together afterwards.
"""

import asyncio
import logging
from collections.abc import Callable

from kvorum.broker.add_partitions_to_txn import (
    FIRST_VERSION_OF_BROKERS,
    PartitionErrors,
    TransactionBatch,
    TransactionData,
    TransactionQueue,
)
from kvorum.broker.coordinators import transaction_coordinator
from kvorum.metadata.image import MetadataImage
from kvorum.node.events.log_event import LogEvent
from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.node.outbound.outgoing import Outgoing, address_of_broker
from kvorum.node.tasks import cancel_and_wait
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)

_log = logging.getLogger(__name__)


class AddPartitionsToTxnManager:
    """A queue and a connection for each coordinator; everything is opened when it is needed.

    `listener` is the one that brokers use.
    """

    def __init__(
        self,
        broker_id: int,
        listener: str,
        *,
        request_timeout_ms: int,
        image: Callable[[], MetadataImage],
        outgoing: Outgoing,
    ) -> None:
        self._broker_id = broker_id
        self._listener = listener
        self._request_timeout_ms = request_timeout_ms
        self._image = image
        self._outgoing = outgoing
        self._queues: dict[int, TransactionQueue] = {}
        self._senders: dict[int, asyncio.Task[None]] = {}
        self._connections: dict[int, ClientConnection] = {}

    async def add_or_verify_transaction(self, data: TransactionData) -> PartitionErrors:
        """Return what the coordinator refuses; without a coordinator to ask, every partition.

        The code then is COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR for a coordinator that is a
        broker without transactions, as this one is, or NETWORK_EXCEPTION.
        """
        coordinator = transaction_coordinator(self._image(), data.transactional_id, self._listener)
        if coordinator is None:
            return data.errors(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if coordinator.node_id == self._broker_id:
            return data.errors(ErrorCode.NOT_COORDINATOR)
        answered: asyncio.Future[PartitionErrors] = asyncio.get_running_loop().create_future()

        def complete(errors: PartitionErrors) -> None:
            # A client that has gone waits no more.
            if not answered.done():
                answered.set_result(errors)

        node_id = coordinator.node_id
        self._queues.setdefault(node_id, TransactionQueue()).add(data, complete)
        sender = self._senders.get(node_id)
        if sender is None or sender.done():
            self._senders[node_id] = asyncio.create_task(self._send(node_id))
        return await answered

    async def close(self) -> None:
        """Ask no coordinator any more; what waits is answered NETWORK_EXCEPTION."""
        await cancel_and_wait(*self._senders.values())
        for queue in self._queues.values():
            batch = queue.take()
            if batch is not None:
                batch.fail(ErrorCode.NETWORK_EXCEPTION)
        for connection in self._connections.values():
            await connection.close()

    async def _send(self, node_id: int) -> None:
        """Ask a coordinator until nothing waits for it."""
        while (batch := self._queues[node_id].take()) is not None:
            try:
                await self._ask(node_id, batch)
            except ClientConnectionError as error:
                _log.warning(
                    LogEvent(
                        "A transaction's coordinator did not answer",
                        coordinator=node_id,
                        error=str(error),
                    )
                )
            except Exception:  # noqa: BLE001 - logged
                # Later transactions have to be asked about all the same.
                _log.exception("An unexpected error while a transaction was verified")
                batch.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            finally:
                batch.fail(ErrorCode.NETWORK_EXCEPTION)

    async def _ask(self, node_id: int, batch: TransactionBatch) -> None:
        connection = await self._connect(node_id)
        offered = connection.peer_versions.get(ApiKey.ADD_PARTITIONS_TO_TXN)
        if offered is None:
            batch.fail(ErrorCode.NOT_COORDINATOR)
            return
        if offered[1] < FIRST_VERSION_OF_BROKERS:
            _log.warning(
                LogEvent("A transaction's coordinator cannot verify it", coordinator=node_id)
            )
            batch.skip()
            return
        batch.on_response(
            await connection.request(
                batch.request,
                AddPartitionsToTxnResponse,
                timeout_ms=self._request_timeout_ms,
                version=connection.version_for(AddPartitionsToTxnRequest),
            )
        )

    async def _connect(self, node_id: int) -> ClientConnection:
        """Return the connection to a coordinator, opened if need be, at its latest address."""
        known = self._connections.get(node_id)
        if known is not None and known.is_open:
            return known
        opened = await self._outgoing.open(
            address_of_broker(self._image(), node_id, self._listener),
            client_id=f"broker-{self._broker_id}-add-partitions-to-txn",
            timeout_ms=self._request_timeout_ms,
        )
        self._connections[node_id] = opened
        return opened
