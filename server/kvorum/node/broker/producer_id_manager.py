"""Producer ids for idempotent producers, from blocks of the controller (Kafka's ProducerIdManager).

The next block is asked for when the one in use runs low, so that producers seldom wait for it.
"""

import logging
from collections.abc import Callable
from typing import Final

from kvorum.metadata.api import RequestError
from kvorum.node.broker.this_broker import ControllerChannel
from kvorum.node.coroutines import Pulse, Task
from kvorum.node.events.log_event import LogEvent
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import ControllerUnreachableError
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

PREFETCH_AT: Final = 0.9
"""The part of a block that is used when the next one is asked for."""
_log = logging.getLogger(__name__)


class ProducerIdManager:
    """Hands out producer ids, each once in the whole cluster."""

    def __init__(
        self,
        channel: ControllerChannel,
        runtime: Runtime,
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._channel = channel
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._ids = range(0)
        self._used_count = 0
        self._next_ids: range | None = None
        self._allocation: Task[None] | None = None
        self._is_allocating = False
        self._allocated = Pulse(runtime)

    async def generate_producer_id(self) -> int:
        """Return the next id, once the controller has given a block that has it.

        Raises RequestError COORDINATOR_LOAD_IN_PROGRESS, which clients retry, if it gives none.
        """
        await self.wait_for_id()
        return self.take_producer_id()

    async def wait_for_id(self) -> None:
        """Wait until an id is at hand, or until the controller has given none."""
        self._prefetch()
        if not self._has_id() and self._is_allocating:
            await self._allocated.next()

    def take_producer_id(self) -> int:
        """Return the next id; raises RequestError COORDINATOR_LOAD_IN_PROGRESS without one."""
        self._prefetch()
        if not self._has_id():
            raise RequestError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                "Producer ID block is full, waiting for next block",
            )
        producer_id = self._ids[self._used_count]
        self._used_count += 1
        return producer_id

    def _prefetch(self) -> None:
        """Ask for the next block if this one runs low."""
        is_low = self._used_count >= PREFETCH_AT * len(self._ids) and self._next_ids is None
        if is_low and not self._is_allocating:
            self._is_allocating = True
            self._allocation = Task(self._request_block(), self._end_allocation)

    def _has_id(self) -> bool:
        """Return whether there is an id; begin with the next block where this one is used up."""
        if self._used_count >= len(self._ids) and self._next_ids is not None:
            self._ids, self._next_ids, self._used_count = self._next_ids, None, 0
        return self._used_count < len(self._ids)

    def _end_allocation(self, result: Exception | None) -> None:
        self._is_allocating = False
        self._allocated.beat()
        if result is not None:
            _log.error("Asking for producer ids failed", exc_info=result)

    async def _request_block(self) -> None:
        request = AllocateProducerIdsRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch()
        )
        try:
            response = await self._channel.send(request, AllocateProducerIdsResponse)
        except (ControllerUnreachableError, NoCommonVersionError) as error:
            _log.warning(LogEvent("No block of producer ids", error=str(error)))
            return
        if response.error_code != ErrorCode.NONE:
            _log.warning(LogEvent("No block of producer ids", error=response.error_code))
            return
        start = response.producer_id_start
        self._next_ids = range(start, start + response.producer_id_len)

    def close(self) -> None:
        """Ask for nothing any more."""
        if self._allocation is not None:
            self._allocation.close()
