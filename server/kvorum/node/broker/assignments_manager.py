"""Reports to the controller in which log directories replicas are (Kafka's AssignmentsManager)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kvorum.broker.assignments import Assignments, PartitionKey
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.clock import Clock
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import (
    ControllerUnreachableError,
    NodeToControllerChannelManager,
)
from kvorum.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse

_MS_PER_S: Final = 1000


class AssignmentsManager:
    """Sends `Assignments` over a connection of its own."""

    def __init__(
        self,
        broker_id: int,
        channel: NodeToControllerChannelManager,
        *,
        broker_epoch: Callable[[], int],
        topics: Callable[[], TopicsImage],
        clock: Clock,
    ) -> None:
        self._assignments = Assignments(broker_id)
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._topics = topics
        self._clock = clock
        self._reported = asyncio.Event()
        self._on_accepted: dict[PartitionKey, tuple[bytes, Callable[[], None]]] = {}

    def on_assignment(
        self,
        key: PartitionKey,
        directory_id: bytes,
        on_accepted: Callable[[], None] | None = None,
    ) -> None:
        """Report the directory of a replica's log; `on_accepted` is called once it is known.

        A later report for the same replica takes the place of this one.
        """
        self._on_accepted.pop(key, None)
        if on_accepted is not None:
            self._on_accepted[key] = directory_id, on_accepted
        self._assignments.on_assignment(key, directory_id, self._clock.monotonic_ms())
        self._reported.set()

    async def run(self) -> None:
        """Send what is reported until the task is cancelled."""
        while True:
            self._reported.clear()
            due_ms = self._assignments.next_due_ms()
            wait_ms = None if due_ms is None else due_ms - self._clock.monotonic_ms()
            if wait_ms is None:
                await self._reported.wait()
            elif wait_ms > 0:
                await asyncio.sleep(wait_ms / _MS_PER_S)
            else:
                await self._send()

    async def close(self) -> None:
        """Close the connection to the controller."""
        await self._channel.close()

    async def _send(self) -> None:
        request = self._assignments.due(self._topics(), broker_epoch=self._broker_epoch())
        if request is None:
            return
        try:
            response = await self._channel.request(request, AssignReplicasToDirsResponse)
        except (ControllerUnreachableError, NoCommonVersionError):
            self._assignments.on_disconnected(self._clock.monotonic_ms())
            return
        for key, directory_id in self._assignments.on_response(
            response, self._clock.monotonic_ms()
        ):
            awaited = self._on_accepted.get(key)
            if awaited is not None and awaited[0] == directory_id:
                del self._on_accepted[key]
                awaited[1]()
