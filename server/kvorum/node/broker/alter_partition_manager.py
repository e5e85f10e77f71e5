"""Changes of ISRs on their way to the active controller (Kafka's DefaultAlterPartitionManager)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kvorum.broker.partition_leader.alter_partition_manager import AlterPartitionManager
from kvorum.broker.partition_leader.outcomes import Answer, Refused
from kvorum.broker.partition_leader.partition_state import IsrProposal
from kvorum.node.clock import Clock
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import (
    ControllerUnreachableError,
    NodeToControllerChannelManager,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionResponse

_MS_PER_S: Final = 1000


class DefaultAlterPartitionManager:
    """Sends the proposals of all partitions; `on_answer` gets the controller's answer to each."""

    def __init__(
        self,
        broker_id: int,
        channel: NodeToControllerChannelManager,
        *,
        broker_epoch: Callable[[], int],
        clock: Clock,
        on_answer: Callable[[IsrProposal, Answer], None],
    ) -> None:
        self._queue = AlterPartitionManager(broker_id)
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._on_answer = on_answer
        self._submitted = asyncio.Event()

    def submit(self, proposal: IsrProposal) -> None:
        """Send a proposal; it is refused at once while another one of its partition is sent."""
        if self._queue.submit(proposal):
            self._submitted.set()
        else:
            self._on_answer(proposal, Refused(ErrorCode.OPERATION_NOT_ATTEMPTED))

    async def run(self) -> None:
        """Send what is submitted until the task is cancelled."""
        while True:
            self._submitted.clear()
            now_ms = self._clock.monotonic_ms()
            due_ms = self._queue.next_due_ms()
            if due_ms is None:
                await self._submitted.wait()
            elif due_ms > now_ms:
                await asyncio.sleep((due_ms - now_ms) / _MS_PER_S)
            else:
                await self._send(now_ms)

    async def close(self) -> None:
        """Close the connection to the controller."""
        await self._channel.close()

    async def _send(self, now_ms: float) -> None:
        request = self._queue.due(now_ms, broker_epoch=self._broker_epoch())
        assert request is not None
        try:
            response = await self._channel.request(request, AlterPartitionResponse)
        except (ControllerUnreachableError, NoCommonVersionError):
            self._queue.on_disconnected(self._clock.monotonic_ms())
            return
        for proposal, answer in self._queue.on_response(response, self._clock.monotonic_ms()):
            self._on_answer(proposal, answer)
